-- Each pod is taken to ask for the most that any asks for: exact where they are alike, never too little.
function GetReplicas(object)
  local sets, total = counted(pod_sets(object))
  if #sets == 0 then return 0, nil end
  local request, largest = {}, sets[1]
  for _, set in ipairs(sets) do
    if set.count > largest.count then largest = set end
    for name, quantity in pairs(set.request) do
      local most = request[name]
      if not most or kube.getResourceQuantity(quantity) > kube.getResourceQuantity(most) then
        request[name] = quantity
      end
    end
  end
  -- Of several node selectors only one can be said: that of most of the pods.
  local asked = {nodeClaim = largest.asked.nodeClaim, priorityClassName = largest.asked.priorityClassName}
  if next(request) ~= nil then asked.resourceRequest = request end
  if next(asked) == nil then return total, nil end
  return total, asked
end
