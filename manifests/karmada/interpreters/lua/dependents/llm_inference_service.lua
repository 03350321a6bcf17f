local function dependents(object)
  local spec = map(object.spec)
  local found = {claim(map(spec.model).uri)}
  for _, base in ipairs(map(spec.baseRefs)) do
    if text(map(base).name) ~= "" then
      found[#found + 1] = {apiVersion = object.apiVersion, kind = "LLMInferenceServiceConfig", name = base.name}
    end
  end
  return found
end
