local function pod_sets(object)
  if type(object.spec) ~= "table" then return {} end
  return ray_nodes(object.spec)
end
