"""Ranks in pods of Kubernetes and OpenShift, reached by `kubectl` or `oc` port-forwards.

- `pod_source`    the endpoints `k8s:...` and `oc:...`, and their `Source`.
- `pods`          reads pod objects into ranks: numbers, restarts, reasons for waiting.
- `pod_failures`  reports each failed pod once.
- `tool`          runs kubectl or oc, and explains their errors.
- `pod_forward`   port forwards to one pod, opened once something listens there.
"""

from dap_mux.cluster.kubernetes.pod_source import Kubernetes

__all__ = ["Kubernetes"]
