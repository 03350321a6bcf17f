-- What a pod asks for. A pod that asks for nothing would fit anywhere, so a template that nobody can read
-- asks for what no node has; the binding then shows why it waits.
local UNREADABLE = "fairway.dev/unreadable-pod-template"

local function requirements(template)
  if next(map(map(map(template).spec).containers)) ~= nil then
    local read, found = pcall(kube.accuratePodRequirements, template)
    if read then return found end
  end
  return {resourceRequest = {[UNREADABLE] = "1"}}
end
