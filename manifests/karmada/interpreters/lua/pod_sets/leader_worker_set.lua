-- A replica of a LeaderWorkerSet is a group: one leader and size - 1 workers.
local function pod_sets(object, groups)
  local spec = map(object.spec)
  local group = map(spec.leaderWorkerTemplate)
  local workers = math.max(1, count(group.size, 1)) - 1
  groups = groups or count(spec.replicas, 1)
  local leader = group.leaderTemplate
  if leader == nil then leader = group.workerTemplate end
  return {
    {name = "leader", count = groups, template = leader},
    {name = "worker", count = math.min(groups * workers, MAX_COUNT), template = group.workerTemplate},
  }
end
