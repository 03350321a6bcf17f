-- A job that runs on a cluster which is there already (clusterSelector) goes where that cluster is: no pods to
-- place. Else its cluster, and the pod that submits it, which KubeRay gives so much where no template does.
local function submitter()
  local resources = {requests = {cpu = "500m", memory = "200Mi"}}
  return {spec = {containers = {{name = "ray-job-submitter", resources = resources}}}}
end

local function pod_sets(object)
  local spec = map(object.spec)
  if type(spec.rayClusterSpec) ~= "table" then return {} end
  local sets, mode = ray_nodes(spec.rayClusterSpec), text(spec.submissionMode)
  if mode == "" or mode == "K8sJobMode" then
    local template = spec.submitterPodTemplate
    if template == nil then template = submitter() end
    sets[#sets + 1] = {name = "submitter", count = 1, template = template}
  end
  return sets
end
