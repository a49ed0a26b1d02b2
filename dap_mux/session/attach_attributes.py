"""The ranks named by an editor's `attach` request, as endpoints of `dap-mux attach`.

`endpoints`          endpoints as on the command line
`cluster`            an endpoint such as `oc:team/job/train`, an object with its parts, or a list
`connect`, `ranks`   the address of rank 0, and the number of ranks from that port on
`tunnel`             how the hosts of `endpoints` or `connect` are reached: by ssh, or into a pod
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dap_mux.cluster.endpoints import description_of, descriptions
from dap_mux.cluster.records import FIRST_PORT
from dap_mux.cluster.source import BY_CHOICE, Description
from dap_mux.pure.errors import UsageError

Arguments = Mapping[str, Any]
LOOPBACK: Final = ("", "localhost", "127.0.0.1", "[::1]")
CLUSTERS: Final = 'an endpoint such as "oc:team/job/train", or {"kind": "oc", "pod": "trainer-0"}'
DEFAULT_KIND: Final = "k8s"
COMMON_PARTS: Final = ("kind", "group", "port", "ranks")
_NAMED: Final = re.compile(r"(?:[A-Za-z_][\w.-]*=)?[a-z][a-z0-9]*:.*[^/]$", re.DOTALL)
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
        several = isinstance(cluster, Sequence) and not isinstance(cluster, str)
        named = [_named(each) for each in (cluster if several else [cluster])]
        return [*(_by_own_way(word, tunnel) for word in named), *words]
    words = words or [_connect(arguments)]
    return [_through(tunnel, word) for word in words] if tunnel else words


def refuse_attach_attributes(arguments: Arguments) -> None:
    """Refuse what an `attach` request cannot have. Raises UsageError."""
    if arguments.get("processId"):
        raise UsageError(
            "`processId`: ranks are not injected into running processes; start them with "
            "`dap-mux run`, or let each call debugpy.listen() and name them by `endpoints`"
        )
    if arguments.get("listen"):
        raise UsageError(
            "`listen`: an attach configuration does not wait for ranks; use "
            "`dap-mux attach dial:N` for N ranks that connect to the session"
        )


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


def kinds() -> dict[str, Description]:
    """Return the sources that a `cluster` object can name, by its `kind`."""
    return {name: about for name, about in descriptions().items() if about.names}


def _named(cluster: object) -> str:
    """Return the endpoint of one `cluster`."""
    if isinstance(cluster, str):
        if not _NAMED.match(cluster):
            raise UsageError(f"`cluster` {cluster!r} is not an endpoint: use {CLUSTERS}")
        return cluster
    if not isinstance(cluster, Mapping):
        raise UsageError(f"`cluster` must be {CLUSTERS}, not {cluster!r}")
    name = cluster.get("kind", DEFAULT_KIND)
    kind = description_of(name) if isinstance(name, str) else None
    if kind is None or not kind.names:
        raise UsageError(f"`cluster`: kind must be one of {', '.join(kinds())}, not {name!r}")
    _check_parts(name, kind, cluster)
    parts = {part: _text(cluster, part) for part in (*kind.names, *kind.others)}
    group = _text(cluster, "group")
    endpoint = f"{name}:{kind.spell(parts)}{_ports(cluster, kind)}"
    return f"{group}={endpoint}" if group else endpoint


def _check_parts(name: str, kind: Description, parts: Arguments) -> None:
    """Raise `UsageError` if a part is missing, unknown, or excludes another."""
    known = (*COMMON_PARTS, *kind.names, *kind.others)
    unknown = [part for part in parts if part not in known]
    if unknown:
        raise UsageError(f"`cluster`: {name} has no {unknown[0]}; it has {', '.join(known)}")
    given = [part for part in kind.names if parts.get(part)]
    if len(given) != 1:
        given_text = f", not {' and '.join(given)}" if given else ""
        raise UsageError(f"`cluster`: {name} needs {' or '.join(kind.names)}{given_text}")


def _text(parts: Arguments, name: str) -> str:
    value = parts.get(name)
    if value is None:
        return ""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"`cluster`: {name} must be a string, not {value!r}")


def _ports(parts: Arguments, kind: Description) -> str:
    """Return `:PORT+RANKS`, each only where it is given or needed."""
    port, ranks = _number(parts, "port"), _number(parts, "ranks")
    if ranks and not port and kind.count_needs_port:
        port = FIRST_PORT
    return (f":{port}" if port else "") + (f"+{ranks}" if ranks else "")


def _number(parts: Arguments, name: str) -> int:
    value = parts.get(name, 0)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UsageError(f"`cluster`: {name} must be a number from 1, not {value!r}")


def _by_own_way(word: str, tunnel: object) -> str:
    """Endpoints of a cluster have a tunnel of their own; some have a choice of two."""
    scheme = word.partition(":")[0].rpartition("=")[2]
    own = (description_of(scheme) or Description()).tunnels
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
    about = description_of(kind) if there else None
    if tunnel != "ssh" and not (about and about.tunnel_to):
        raise UsageError(f"`tunnel` must be {_tunnels()}, not {tunnel!r}")
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


def _tunnels() -> str:
    """Return the values of `tunnel`, for a message."""
    known = [f"{name}:{each.tunnel_to}" for name, each in descriptions().items() if each.tunnel_to]
    *first, last = map(json.dumps, ["ssh", *sorted(known, reverse=True)])
    return f"{', '.join(first)} or {last}"
