local function dependents(_)
  return {}
end
