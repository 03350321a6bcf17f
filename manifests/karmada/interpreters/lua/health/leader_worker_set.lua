-- Healthy: available, which is that no more groups are down than a rollout may take; before the condition is
-- there, all groups ready.
function InterpretHealth(object)
  local status = map(object.status)
  if next(map(status.conditions)) ~= nil then return done(status) end
  return type(status.readyReplicas) == "number" and status.readyReplicas >= count(map(object.spec).replicas, 1)
end
