"""ResourceFlavor, ClusterQueue, LocalQueue, ServiceClass: types, defaults and what is wrong with them."""
