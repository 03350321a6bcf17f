"""Why nothing is known of a cluster's devices: what is said where there is no NodeDevices object."""

COULD_NOT_READ = "NodeDevices: could not be read"
NO_AGENTS = "NodeDevices: there are none (does the node agent run here?)"
NOT_IN_FILE = "NodeDevices: this dump has none (where the node agent runs, add nodedevices to it)"
