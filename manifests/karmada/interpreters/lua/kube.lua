local kube = require("kube")
