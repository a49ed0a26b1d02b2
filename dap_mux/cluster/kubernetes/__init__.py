"""Ranks in pods of Kubernetes and OpenShift, reached by `kubectl` or `oc` port-forwards.

- `pod_source`    the endpoints `k8s:...` and `oc:...`, and their `Source`.
- `job_kinds`     the kinds of jobs, of operators too, and which pods an endpoint means.
- `pods`          reads pod objects: restarts, reasons for waiting, failures, and their ranks.
- `tool`          runs kubectl or oc, and explains their errors.
- `pod_forward`   port forwards to one pod, opened once something listens there.
"""

from dap_mux.cluster.kubernetes.pod_source import Kubernetes

__all__ = ["Kubernetes"]
