local function failed(status) return holds(status, "Failed") end
local function done(status) return holds(status, "Succeeded") end
