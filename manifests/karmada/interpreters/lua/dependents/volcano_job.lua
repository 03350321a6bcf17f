-- Volumes of the job that name a claim which is there already.
local function dependents(object)
  local found = {}
  for _, volume in ipairs(map(map(object.spec).volumes)) do
    local claim = text(map(volume).volumeClaimName)
    if claim ~= "" and volume.volumeClaim == nil then
      found[#found + 1] = {apiVersion = "v1", kind = "PersistentVolumeClaim", name = claim}
    end
  end
  return found
end
