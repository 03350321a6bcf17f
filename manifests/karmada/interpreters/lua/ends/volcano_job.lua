local FAILURES = {Failed = true, Aborting = true, Aborted = true, Terminating = true, Terminated = true}
local function phase(status) return text(map(status.state).phase) end
local function failed(status) return FAILURES[phase(status)] == true end
local function done(status) return phase(status) == "Completed" end
