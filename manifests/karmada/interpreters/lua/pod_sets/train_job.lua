-- A TrainJob says how many nodes and what each asks for. Where these run may be said in patches of its runtime's
-- job "node" (runtimePatches, and podTemplateOverrides before Trainer 2.2); the runtime itself is another object.
local NODE = "node"

local function is_for_node(override)
  for _, target in ipairs(map(override.targetJobs)) do
    if map(target).name == NODE then return true end
  end
  return false
end

local function patches(spec)
  local found = {}
  for _, override in ipairs(map(spec.podTemplateOverrides)) do
    if is_for_node(map(override)) then found[#found + 1] = map(map(override).spec) end
  end
  for _, patch in ipairs(map(spec.runtimePatches)) do
    local jobs = map(map(map(map(patch).trainingRuntimeSpec).template).spec).replicatedJobs
    for _, job in ipairs(map(jobs)) do
      if map(job).name == NODE then
        found[#found + 1] = map(map(map(map(job.template).spec).template).spec)
      end
    end
  end
  return found
end

local function pod_sets(object)
  local spec = map(object.spec)
  local trainer = map(spec.trainer)
  local container = {name = NODE, resources = trainer.resourcesPerNode, env = trainer.env}
  local pod = {containers = {container}}
  for _, patch in ipairs(patches(spec)) do
    for _, field in ipairs({"nodeSelector", "affinity", "tolerations", "volumes", "imagePullSecrets", "serviceAccountName"}) do
      if patch[field] ~= nil then pod[field] = patch[field] end
    end
  end
  return {{name = NODE, count = count(trainer.numNodes, 1), template = {spec = pod}}}
end
