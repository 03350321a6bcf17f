-- A gang runs in one cluster, and its status is the status there. Where a policy copies it to several, the
-- template shows the cluster that is worst off (failed, then unfinished, then done), with the counts of all.
local COUNTS = {
  "active", "succeeded", "failed", "pending", "running", "terminating", "unknown", "minAvailable",
  "replicas", "readyReplicas", "updatedReplicas",
  "readyWorkerReplicas", "availableWorkerReplicas", "desiredWorkerReplicas", "minWorkerReplicas", "maxWorkerReplicas",
}
local QUANTITIES = {"desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU"}
local PARTS = {"replicatedJobsStatus", "jobsStatus", "replicaStatuses", "taskStatusCount"}
local FAILED, UNFINISHED, DONE = 1, 2, 3

local function standing(status)
  if failed(status) then return FAILED end
  if done(status) then return DONE end
  return UNFINISHED
end

local function named(list, name)
  for _, each in ipairs(list) do
    if map(each).name == name then return each end
  end
end

-- A list can only be added to a list, and a map to a map.
local function alike(one, other)
  return next(one) == nil or (one[1] == nil) == (other[1] == nil)
end

-- Numbers add up; entries of lists belong together by their name, those of maps by their key.
local function add(into, from)
  for key, value in pairs(from) do
    if type(value) == "number" and type(key) == "string" then
      if type(into[key] or 0) == "number" then into[key] = (into[key] or 0) + value end
    elseif type(value) == "table" and type(key) == "string" then
      local own = into[key]
      if own == nil then into[key] = value
      elseif type(own) == "table" and alike(own, value) then add(own, value) end
    elseif type(value) == "table" and value.name ~= nil then
      local own = named(into, value.name)
      if own then add(own, value) else into[#into + 1] = value end
    end
  end
end

local function add_counts(into, from)
  for _, key in ipairs(COUNTS) do add(into, {[key] = from[key]}) end
  for _, key in ipairs(PARTS) do
    if type(from[key]) == "table" then add(into, {[key] = from[key]}) end
  end
  for _, key in ipairs(QUANTITIES) do
    local read, sum = pcall(kube.resourceAdd, into[key], from[key])
    if read and (into[key] or from[key]) then into[key] = sum end
  end
end

function AggregateStatus(object, items)
  local worst, place, statuses, silent = nil, 0, {}, false
  for _, item in ipairs(map(items)) do
    local status = map(item).status
    if type(status) == "table" then
      statuses[#statuses + 1] = status
      if not worst or standing(status) < standing(worst) then worst, place = status, #statuses end
    else
      silent = true
    end
  end
  -- A cluster that has said nothing yet is not done.
  if not worst or (silent and standing(worst) == DONE) then return object end
  for index, status in ipairs(statuses) do
    if index ~= place then add_counts(worst, status) end
  end
  object.status = worst
  return object
end
