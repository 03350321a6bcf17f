-- The fewest pods with which the service answers. One that may scale to nothing still needs room for one pod
-- when a request comes. With workerSpec the predictor is a head of pipelineParallelSize nodes.
local MODELS = {
  "model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm",
  "paddle", "art",
}

local function model_of(component)
  for _, field in ipairs(MODELS) do
    if type(component[field]) == "table" then return component[field] end
  end
end

local function pod_sets(object)
  local spec, sets = map(object.spec), {}
  for _, name in ipairs({"predictor", "transformer", "explainer"}) do
    local component = spec[name]
    if type(component) == "table" then
      local model, container = model_of(component), nil
      if model then
        container = {name = "kserve-container", resources = model.resources, env = model.env, envFrom = model.envFrom}
      end
      local pods = math.max(1, count(component.minReplicas, 1))
      sets[#sets + 1] = {name = name, count = pods, template = serving_pod(component, container)}
      local workers = component.workerSpec
      if type(workers) == "table" then
        local nodes = math.max(1, count(workers.pipelineParallelSize, 1))
        sets[#sets + 1] = {name = name .. "-worker", count = nodes - 1, template = serving_pod(workers)}
      end
    end
  end
  return sets
end
