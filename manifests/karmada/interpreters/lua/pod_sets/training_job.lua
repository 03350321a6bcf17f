-- The roles of a training job, in the order of their names so that the answer is the same each time.
local function roles(object)
  local specs, names = map(map(object.spec)[REPLICA_SPECS]), {}
  for name in pairs(specs) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  return names, specs
end

local function pod_sets(object)
  local sets, names, specs = {}, roles(object)
  for index, name in ipairs(names) do
    local role = map(specs[name])
    sets[index] = {name = string.lower(name), count = count(role.replicas, 1), template = role.template}
  end
  return sets
end
