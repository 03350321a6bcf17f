local FAILURES = {FAILED = true, STOPPED = true}
local function failed(status)
  return status.jobDeploymentStatus == "Failed" or FAILURES[text(status.jobStatus)] == true
end
local function done(status) return status.jobDeploymentStatus == "Complete" and not failed(status) end
