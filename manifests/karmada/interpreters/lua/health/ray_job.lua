-- Healthy: the job runs or has succeeded, or its cluster waits for one to be submitted by hand.
local HEALTHY = {Running = true, Waiting = true}
function InterpretHealth(object)
  local status = map(object.status)
  return done(status) or (HEALTHY[text(status.jobDeploymentStatus)] == true and not failed(status))
end
