"""A Kubernetes API server for the real kubectl: `get pods` and its watch, `exec`, `port-forward`.

- `cluster`  pods with networks of their own, which start, end and start again: what is served.
- `api`      the server: lists, watches, and the two kinds of connection into a pod.
- `custom_resources`  the kinds of operators, and their objects.
- `spdy`     SPDY/3.1, which kubectl tunnels through a WebSocket for `port-forward`.

Only what dap-mux asks of a cluster, as kubectl 1.31 and later ask for it.
"""

from tests.support.kube_server.api import KubeServer, kube_server
from tests.support.kube_server.cluster import Cluster, Pod, cluster

__all__ = ["Cluster", "KubeServer", "Pod", "cluster", "kube_server"]
