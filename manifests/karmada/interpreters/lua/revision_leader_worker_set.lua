-- Karmada divides what GetReplicas counts, which is pods because that is what clusters have room for. A group
-- that a cluster got only part of cannot start there, so it is left out.
function ReviseReplica(object, replicas)
  if type(object.spec) ~= "table" or object.spec[1] ~= nil then return object end
  local _, pods_of_a_group = counted(pod_sets(object, 1))
  object.spec.replicas = math.floor(count(replicas, 0) / pods_of_a_group)
  return object
end
