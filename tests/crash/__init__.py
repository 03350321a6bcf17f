"""The dispatcher is killed at each of its writes, and everything comes out as if it had not been.

``python -m tests.crash --schedules 100``. A schedule is a few workloads over two queues and two clusters,
made from its seed. It is run twice, with an API server and a stand-in for Karmada in this process and the
real dispatcher as a child: once in peace, once with SIGKILL just before and just after each write. An
observer with arithmetic of its own looks at every state that any object ever has.
"""
