-- Healthy: every pod of every role runs or has succeeded, or the whole has.
function InterpretHealth(object)
  local status = map(object.status)
  if failed(status) or holds(status, "Suspended") then return false end
  if done(status) then return true end
  local sets = pod_sets(object)
  local running = {}
  for name, role in pairs(map(status.replicaStatuses)) do
    role = map(role)
    running[string.lower(name)] = count(role.active, 0) + count(role.succeeded, 0)
  end
  for _, set in ipairs(sets) do
    if (running[set.name] or 0) < set.count then return false end
  end
  return #sets > 0
end
