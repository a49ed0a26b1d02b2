"""The ranks named by an editor's `attach` request, as endpoints of `dap-mux attach`.

`endpoints`          endpoints as on the command line
`cluster`            an endpoint such as `oc:team/job/train`, or an object with its parts
`connect`, `ranks`   the address of rank 0, and the number of ranks from that port on
`tunnel`             how the hosts of `endpoints` or `connect` are reached: by ssh, or into a pod
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from dap_mux.errors import UsageError
from dap_mux.session.cluster_attribute import cluster_endpoints
from dap_mux.session.debugpy_attributes import refuse_attach_attributes

Arguments = Mapping[str, Any]
LOOPBACK: Final = ("", "localhost", "127.0.0.1", "[::1]")
FORWARDED: Final = ("k8s", "oc")
BY_CHOICE: Final = (False, "ssh")
# The values of `tunnel` that are allowed with each kind of cluster.
OWN_TUNNELS: Final[dict[str, tuple[object, ...]]] = {
    "k8s": ("port-forward",),
    "oc": ("port-forward",),
    "openpai": BY_CHOICE,
    "slurm": BY_CHOICE,
    "ssh": ("ssh",),
}
TUNNELS: Final = '"ssh", "ssh:HOST", "oc:NAMESPACE/POD" or "k8s:NAMESPACE/POD"'
_ENDPOINT: Final = re.compile(
    r"(?P<group>[A-Za-z_][\w.-]*=)?(?P<host>\[[^\]]*\]|[^:\[\]@]*)(?P<ports>:[0-9]+(?:[-+][0-9]+)?)",
    re.ASCII,
)


def attach_endpoints(arguments: Arguments) -> list[str]:
    """Return the endpoints of an `attach` request. Raises UsageError."""
    refuse_attach_attributes(arguments)
    endpoints = arguments.get("endpoints") or []
    words = [endpoints] if isinstance(endpoints, str) else endpoints
    if words and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise UsageError(f"`endpoints` must be a list of strings, not {json.dumps(endpoints)}")
    cluster, tunnel = arguments.get("cluster"), arguments.get("tunnel")
    if cluster:
        return [*(_by_own_way(word, tunnel) for word in cluster_endpoints(cluster)), *words]
    words = words or [_connect(arguments)]
    return [_through(tunnel, word) for word in words] if tunnel else words


def _connect(arguments: Arguments) -> str:
    connect = arguments.get("connect") or arguments
    port = connect.get("port") if isinstance(connect, Mapping) else None
    if not isinstance(port, int):
        raise UsageError(
            "attach needs `endpoints` (for example ['localhost:5678-5681']), or `cluster` "
            "('oc:team/job/train'), or `connect` with the port of rank 0 and `ranks` for "
            "the number of ranks"
        )
    count = arguments.get("ranks", 1)
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"`ranks` must be the number of ranks, not {count!r}")
    return f"{connect.get('host') or 'localhost'}:{port}+{count}"


def _by_own_way(word: str, tunnel: object) -> str:
    """Endpoints of a cluster have a tunnel of their own; some have a choice of two."""
    scheme = word.partition(":")[0].rpartition("=")[2]
    own = OWN_TUNNELS.get(scheme, (False,))
    if tunnel is None or tunnel in own:
        by_ssh = own == BY_CHOICE and tunnel == "ssh" and not word.endswith(",ssh")
        return f"{word},ssh" if by_ssh else word
    ways = " or ".join(json.dumps(way) for way in own)
    raise UsageError(
        f"`tunnel`: {word} is reached by {ways}, not by {json.dumps(tunnel)}; leave `tunnel` "
        "out, or name the ranks by `endpoints`"
    )


def _through(tunnel: object, word: str) -> str:
    """Return an endpoint as it is reached by this tunnel."""
    kind, _, there = tunnel.partition(":") if isinstance(tunnel, str) else ("", "", "")
    if tunnel != "ssh" and not (there and kind in (*FORWARDED, "ssh")):
        raise UsageError(f"`tunnel` must be {TUNNELS}, not {tunnel!r}")
    endpoint = _ENDPOINT.fullmatch(word)
    if endpoint is None:
        raise UsageError(f"`tunnel` {tunnel}: {word} is not a host and port")
    group, host, ports = endpoint["group"] or "", endpoint["host"], endpoint["ports"]
    if tunnel == "ssh":
        return f"{group}ssh:{host}{ports}"
    if host not in (*LOOPBACK, there.rpartition("@")[2]):
        raise UsageError(
            f"`tunnel` {tunnel} leads to ports of that host, but {word} is elsewhere: use "
            f'localhost{ports}, or reach each host separately with "tunnel": "ssh"'
        )
    return f"{group}{tunnel}{ports}"
