local function holds(status, condition)
  for _, each in ipairs(map(status.conditions)) do
    if map(each).type == condition and each.status == "True" then return true end
  end
  return false
end
