-- One head; of each group as many replicas as its bounds let it have, each of them numOfHosts pods.
local function group_pods(group)
  if group.suspend == true then return 0 end
  local most = count(group.maxReplicas, MAX_COUNT)
  local replicas = math.max(count(group.minReplicas, 0), math.min(count(group.replicas, 0), most))
  return math.min(replicas * count(group.numOfHosts, 1), MAX_COUNT)
end

local function ray_nodes(cluster)
  local sets = {{name = "ray-head", count = 1, template = map(cluster.headGroupSpec).template}}
  for index, group in ipairs(map(cluster.workerGroupSpecs)) do
    group = map(group)
    local name = text(group.groupName)
    if name == "" then name = "worker-" .. index end
    sets[#sets + 1] = {name = name, count = group_pods(group), template = group.template}
  end
  return sets
end
