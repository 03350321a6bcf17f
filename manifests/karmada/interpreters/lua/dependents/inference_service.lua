local function dependents(object)
  local found = {}
  for _, name in ipairs({"predictor", "transformer", "explainer"}) do
    local component = map(map(object.spec)[name])
    found[#found + 1] = claim(map(model_of(component)).storageUri)
  end
  return found
end
