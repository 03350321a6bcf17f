-- Karmada wants names that are unique and of at most 32 characters.
local MAX_NAME = 32

local function name_of(set, index, used)
  local name = text(set.name)
  if not string.find(name, "^[%w._-]+$") then name = "pods-" .. index end
  name = string.sub(name, 1, MAX_NAME)
  local base = name
  while used[name] do
    used[base] = used[base] + 1
    local suffix = "-" .. used[base]
    name = string.sub(base, 1, MAX_NAME - #suffix) .. suffix
  end
  used[name] = 1
  return name
end

function GetComponents(object)
  local components, used, total = {}, {}, 0
  for index, set in ipairs(pod_sets(object)) do
    total = total + set.count
    components[index] = {
      name = name_of(set, index, used),
      replicas = set.count,
      replicaRequirements = requirements(set.template),
    }
  end
  -- Karmada's own estimator tries 2^31 times where a set has no pods; and whatever is empty now will want
  -- room for a pod later.
  if total == 0 and components[1] then components[1].replicas = 1 end
  return components
end
