-- What pods need beside themselves; Karmada leaves out what is named twice.
function GetDependencies(object)
  local found, namespace = {}, map(object.metadata).namespace
  if type(namespace) ~= "string" then namespace = nil end
  for _, set in ipairs(pod_sets(object)) do
    local read, needed = pcall(kube.getPodDependencies, set.template, namespace)
    if read then
      for _, reference in ipairs(map(needed)) do found[#found + 1] = reference end
    end
  end
  for _, reference in ipairs(dependents(object)) do
    reference.namespace = namespace or "default"
    found[#found + 1] = reference
  end
  return found
end
