"""Ranks in pods of Kubernetes and OpenShift, reached by `kubectl` or `oc` port-forwards.

- `source`  the words `k8s:...` and `oc:...`, and the `Source` behind them.
- `pods`    what a cluster says of its pods, read into ranks: numbers, restarts, who waits for what.
- `news`    pods that have failed, told once each.
- `tool`    kubectl or oc: asked once, watched, and what its complaints mean.
- `way`     the forwards to one pod, opened once something listens there.
"""

from dap_mux.cluster.kubernetes.source import Kubernetes

__all__ = ["Kubernetes"]
