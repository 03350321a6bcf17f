-- The runtime where it is one of this namespace, and the secrets of what is fetched before training.
local function dependents(object)
  local spec, found = map(object.spec), {}
  local runtime = map(spec.runtimeRef)
  if runtime.kind == "TrainingRuntime" and text(runtime.name) ~= "" then
    found[1] = {apiVersion = object.apiVersion, kind = "TrainingRuntime", name = runtime.name}
  end
  for _, field in ipairs({"dataset", "model"}) do
    local secret = map(map(map(spec.initializer)[field]).secretRef).name
    if text(secret) ~= "" then found[#found + 1] = {apiVersion = "v1", kind = "Secret", name = secret} end
  end
  return found
end
