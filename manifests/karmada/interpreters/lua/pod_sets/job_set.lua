-- Every job of every replicated job, as many pods of it as run at a time.
local function pod_sets(object)
  local sets = {}
  for index, job in ipairs(map(map(object.spec).replicatedJobs)) do
    job = map(job)
    local spec = map(map(job.template).spec)
    local each = count(spec.parallelism, 1)
    each = math.min(each, count(spec.completions, each))
    local pods = math.min(count(job.replicas, 1) * each, MAX_COUNT)
    sets[index] = {name = job.name, count = pods, template = spec.template}
  end
  return sets
end
