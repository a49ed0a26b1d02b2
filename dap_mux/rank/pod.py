"""The name by which a rank in a Kubernetes pod is reached from outside."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_PORT = 5678  # of `dap-mux attach k8s:...`


def word_of_this_pod(port: int) -> str | None:
    """Return what follows `dap-mux attach` on a machine with kubectl; None outside of a pod."""
    try:
        namespace = (ACCOUNT / "namespace").read_text("ascii").strip()
    except (OSError, ValueError):
        namespace = ""
    return word_of(os.environ, socket.gethostname(), namespace, port)


def word_of(environ: Mapping[str, str], hostname: str, namespace: str, port: int) -> str | None:
    """The same for this environment.

    A pod's host name is its own name; that of a pod of an indexed job is its job's, and its index.
    """
    if "KUBERNETES_SERVICE_HOST" not in environ:
        return None
    name = environ.get("POD_NAME") or hostname
    index = environ.get("JOB_COMPLETION_INDEX")
    if index and name == hostname and name.endswith(f"-{index}"):
        name = f"job/{name[: -len(index) - 1]}"
    namespace = environ.get("POD_NAMESPACE") or namespace
    where = f"{namespace}/{name}" if namespace else name
    return f"k8s:{where}" if port == DEFAULT_PORT else f"k8s:{where}:{port}"
