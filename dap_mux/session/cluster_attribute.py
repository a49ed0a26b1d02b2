"""The attribute `cluster` of an editor's `attach` request, as endpoints of `dap-mux attach`.

It is such an endpoint, an object with the parts of one, or a list of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dap_mux.errors import UsageError

Parts = Mapping[str, Any]
EXAMPLES: Final = 'an endpoint such as "oc:team/job/train", or {"kind": "oc", "pod": "trainer-0"}'
DEFAULT_KIND: Final = "k8s"
_NAMED: Final = re.compile(r"(?:[A-Za-z_][\w.-]*=)?[a-z][a-z0-9]*:.*[^/]$", re.DOTALL)
COMMON_PARTS: Final = ("kind", "group", "port", "ranks")
_FIRST_PORT: Final = 5678


def cluster_endpoints(cluster: object) -> list[str]:
    """Return the endpoint of each cluster. Raises `UsageError`."""
    if isinstance(cluster, Sequence) and not isinstance(cluster, str):
        return [_endpoint_of(one) for one in cluster]
    return [_endpoint_of(cluster)]


def _endpoint_of(cluster: object) -> str:
    if isinstance(cluster, str):
        if not _NAMED.match(cluster):
            raise UsageError(f"`cluster` {cluster!r} is not an endpoint: use {EXAMPLES}")
        return cluster
    if not isinstance(cluster, Mapping):
        raise UsageError(f"`cluster` must be {EXAMPLES}, not {cluster!r}")
    name = cluster.get("kind", DEFAULT_KIND)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UsageError(f"`cluster`: kind must be one of {', '.join(KINDS)}, not {name!r}")
    kind.check(name, cluster)
    group = _text(cluster, "group")
    endpoint = f"{name}:{kind.spell(cluster)}{_ports(cluster, kind)}"
    return f"{group}={endpoint}" if group else endpoint


@dataclass(frozen=True)
class Kind:
    """A kind of cluster: `names`, of which exactly one is given, and optional parts (`others`)."""

    names: tuple[str, ...]
    others: tuple[str, ...]
    spell: Callable[[Parts], str]
    count_needs_port: bool = True

    def check(self, name: str, parts: Parts) -> None:
        """Raise `UsageError` if a part is missing, unknown, or excludes another."""
        known = (*COMMON_PARTS, *self.names, *self.others)
        unknown = [part for part in parts if part not in known]
        if unknown:
            raise UsageError(f"`cluster`: {name} has no {unknown[0]}; it has {', '.join(known)}")
        given = [part for part in self.names if parts.get(part)]
        if len(given) != 1:
            given_text = f", not {' and '.join(given)}" if given else ""
            raise UsageError(f"`cluster`: {name} needs {' or '.join(self.names)}{given_text}")


def _pods(parts: Parts) -> str:
    namespace, context = _text(parts, "namespace"), _text(parts, "context")
    job, pod = _text(parts, "job"), _text(parts, "pod")
    which = _job(job) if job else f"pod/{pod}" if pod else _text(parts, "selector")
    return (f"{namespace}/" if namespace else "") + which + (f"@{context}" if context else "")


def _job(job: str) -> str:
    """Return `job/train`, or `pytorchjob/train` as it is: an operator's job is named with its kind.

    Another first part would be taken for a namespace.
    """
    kind, _, name = job.rpartition("/")
    if not kind:
        return f"job/{name}"
    from dap_mux.cluster.kubernetes.job_kinds import KINDS  # noqa: PLC0415  (seldom used)

    if kind not in KINDS:
        raise UsageError(f"`cluster`: job {job!r} is of no known kind: {', '.join(KINDS)}")
    return job


def _slurm(parts: Parts) -> str:
    step = _text(parts, "step")
    return _text(parts, "job") + (f".{step}" if step else "")


def _ssh(parts: Parts) -> str:
    user = _text(parts, "user")
    return (f"{user}@" if user else "") + _text(parts, "host")


_PODS: Final = Kind(("pod", "job", "selector"), ("namespace", "context"), _pods)
KINDS: Final = {
    "k8s": _PODS,
    "oc": _PODS,
    "slurm": Kind(("job",), ("step",), _slurm, count_needs_port=False),
    "ssh": Kind(("host",), ("user",), _ssh),
}


def _text(parts: Parts, name: str) -> str:
    value = parts.get(name)
    if value is None:
        return ""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"`cluster`: {name} must be a string, not {value!r}")


def _ports(parts: Parts, kind: Kind) -> str:
    """Return `:PORT+RANKS`, each only where it is given or needed."""
    port, ranks = _number(parts, "port"), _number(parts, "ranks")
    if ranks and not port and kind.count_needs_port:
        port = _FIRST_PORT
    return (f":{port}" if port else "") + (f"+{ranks}" if ranks else "")


def _number(parts: Parts, name: str) -> int:
    value = parts.get(name, 0)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UsageError(f"`cluster`: {name} must be a number from 1, not {value!r}")
