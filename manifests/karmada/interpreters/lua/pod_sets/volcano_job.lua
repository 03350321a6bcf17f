-- All replicas of every task: minAvailable is what starts the job, not what it takes in the end.
local function pod_sets(object)
  local sets = {}
  for index, task in ipairs(map(map(object.spec).tasks)) do
    task = map(task)
    local name = text(task.name)
    if name == "" then name = "task-" .. (index - 1) end
    sets[index] = {name = name, count = count(task.replicas, 0), template = task.template}
  end
  return sets
end
