-- Healthy: its minimum runs, or it has completed. Pending and restarting jobs are not, nor are ended ones.
local HEALTHY = {Running = true, Completing = true, Completed = true}
function InterpretHealth(object)
  return HEALTHY[phase(map(object.status))] == true
end
