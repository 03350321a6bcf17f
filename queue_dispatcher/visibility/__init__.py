"""The visibility API: queues, positions and reasons over HTTP, for those who may see them.

Who asks is told by a bearer token of karmada-apiserver, and what that one may see by its RBAC there: nothing
is decided here that the API server would not say too. Names of other namespaces are counted, never told.
"""
