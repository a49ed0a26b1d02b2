"""Ranks in pods of Kubernetes and OpenShift, reached by `kubectl` or `oc` port-forwards.

- `pod_source`    the endpoints `k8s:...` and `oc:...`, and their `Source`.
- `selections`    which pods an endpoint means: named ones, or those of a job.
- `job_kinds`     the kinds of jobs, of operators too: labels, places of pods, ends.
- `pod_ranks`     numbers pods, and makes records of their ranks.
- `pods`          reads pod objects: restarts, reasons for waiting, failures.
- `pod_failures`  reports each failed pod once.
- `tool`          runs kubectl or oc, and explains their errors.
- `pod_forward`   port forwards to one pod, opened once something listens there.
"""

from dap_mux.cluster.kubernetes.pod_source import Kubernetes

__all__ = ["Kubernetes"]
