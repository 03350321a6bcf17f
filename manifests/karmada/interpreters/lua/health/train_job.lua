-- Healthy: each of its jobs is ready or has succeeded (how many there are only the runtime knows).
function InterpretHealth(object)
  local status = map(object.status)
  if failed(status) or holds(status, "Suspended") then return false end
  if done(status) then return true end
  local jobs = map(status.jobsStatus)
  for _, job in ipairs(jobs) do
    job = map(job)
    if count(job.ready, 0) + count(job.succeeded, 0) == 0 then return false end
  end
  return #jobs > 0
end
