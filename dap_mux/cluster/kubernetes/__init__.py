"""Ranks in pods of Kubernetes and OpenShift, reached by `kubectl` or `oc` port-forwards."""

from dap_mux.cluster.kubernetes.pod_source import Kubernetes

__all__ = ["Kubernetes"]
