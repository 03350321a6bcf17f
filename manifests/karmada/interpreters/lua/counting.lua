-- One number and one request for pods that differ: where some ask for devices only those count, since devices
-- are what runs out. Pods that are not there count only where there are none at all.
local function asks_for_devices(request)
  for name in pairs(request) do
    if string.find(name, "/", 1, true) then return true end
  end
  return false
end

local function with_pods(sets)
  local found = {}
  for _, set in ipairs(sets) do
    if set.count > 0 then found[#found + 1] = set end
  end
  if #found > 0 then return found end
  return sets
end

local function counted(sets)
  local all, with_devices, total = {}, {}, 0
  for _, set in ipairs(with_pods(sets)) do
    local asked = map(requirements(set.template))
    local found = {count = set.count, asked = asked, request = map(asked.resourceRequest)}
    all[#all + 1] = found
    if asks_for_devices(found.request) then with_devices[#with_devices + 1] = found end
  end
  if #with_devices > 0 then all = with_devices end
  for _, each in ipairs(all) do total = total + each.count end
  return all, math.min(total, MAX_COUNT)
end
