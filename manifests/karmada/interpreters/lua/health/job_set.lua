-- Healthy: every job of every replicated job has its pods ready or has succeeded, or the whole is completed.
function InterpretHealth(object)
  local status, ready = map(object.status), {}
  if failed(status) then return false end
  if done(status) then return true end
  for _, job in ipairs(map(status.replicatedJobsStatus)) do
    job = map(job)
    ready[text(job.name)] = count(job.ready, 0) + count(job.succeeded, 0)
  end
  local jobs = map(map(object.spec).replicatedJobs)
  for _, job in ipairs(jobs) do
    job = map(job)
    if (ready[text(job.name)] or 0) < count(job.replicas, 1) then return false end
  end
  return #jobs > 0 and not holds(status, "Suspended")
end
