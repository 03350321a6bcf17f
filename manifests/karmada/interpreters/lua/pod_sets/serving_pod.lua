-- A pod as far as a service describes it: what it leaves to a runtime or to defaults is another object.
local POD_FIELDS = {
  "nodeSelector", "affinity", "tolerations", "overhead", "initContainers", "volumes", "imagePullSecrets",
  "serviceAccountName", "priorityClassName",
}

local function serving_pod(fields, container)
  fields = map(fields)
  local pod = {containers = {}}
  for _, field in ipairs(POD_FIELDS) do pod[field] = fields[field] end
  for _, each in ipairs(map(fields.containers)) do pod.containers[#pod.containers + 1] = each end
  pod.containers[#pod.containers + 1] = container
  if #pod.containers == 0 then pod.containers[1] = {name = "main"} end
  return {spec = pod}
end

-- Models on a volume: pvc://claim/path.
local function claim(uri)
  local name = string.match(text(uri), "^pvc://([^/]+)")
  if name then return {apiVersion = "v1", kind = "PersistentVolumeClaim", name = name} end
end
