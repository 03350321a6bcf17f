-- KubeRay tells in conditions; before 1.3 only in the state. A cluster has no end: done is up.
local function failed(status) return holds(status, "ReplicaFailure") end
local function done(status)
  if next(map(status.conditions)) == nil then return status.state == "ready" end
  return holds(status, "HeadPodReady") and holds(status, "RayClusterProvisioned") and not failed(status)
end
