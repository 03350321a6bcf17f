-- Anything may stand in a field: what has the wrong type is read as if it were absent.
local MAX_COUNT = 2147483647

local function map(value)
  if type(value) == "table" then return value end
  return {}
end

local function text(value)
  if type(value) == "string" then return value end
  return ""
end

-- A count that is none is the kind's own default; one that no int32 holds is the largest, which fits nowhere.
local function count(value, default)
  if type(value) ~= "number" or value < 0 or value ~= math.floor(value) then return default end
  return math.min(value, MAX_COUNT)
end
