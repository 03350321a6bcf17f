-- Replicas of the whole, and of the prefill where that is apart. With workers a replica is a group of pods:
-- data / dataLocal of them, else pipeline (KServe makes a LeaderWorkerSet of it).
local function group_of(parallelism)
  local data, here = count(parallelism.data, 0), count(parallelism.dataLocal, 0)
  if data > 0 or here > 0 then return math.max(1, math.floor(math.max(data, 1) / math.max(here, 1))) end
  return math.max(1, count(parallelism.pipeline, 1))
end

local function add_workload(sets, name, workload)
  local replicas = workload.replicas
  if type(workload.scaling) == "table" then replicas = workload.scaling.minReplicas end
  replicas = math.max(1, count(replicas, 1))
  sets[#sets + 1] = {name = name, count = replicas, template = serving_pod(workload.template)}
  if type(workload.worker) == "table" then
    local workers = math.min(replicas * (group_of(map(workload.parallelism)) - 1), MAX_COUNT)
    sets[#sets + 1] = {name = name .. "-worker", count = workers, template = serving_pod(workload.worker)}
  end
end

local function pod_sets(object)
  local sets = {}
  if type(object.spec) ~= "table" then return sets end
  add_workload(sets, "main", object.spec)
  if type(object.spec.prefill) == "table" then add_workload(sets, "prefill", object.spec.prefill) end
  return sets
end
