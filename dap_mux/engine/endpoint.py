"""Where a rank listens and what is known about it, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One debugpy endpoint.

    `remote_root`: what a ranks file says of where the sources are there.
    `announces`: the rank says when it listens, and is left alone until then; `ready`: it has
    said so.
    `dials`: it listens nowhere but calls us (`host` and `port` are its end, "" and 0 before its
    first call); `ready` until we have taken up the call, for each connection is one call.
    `way_down`: why no connection can succeed now (the tunnel is down, the pod has not started); ''
    where one may: then the rank is connected at once. It is known, not tried out.
    `watched`: who found the rank sees its process, and says so when that ends (`RankExited`).
    `incarnation`: another word for another process, where no pid tells them apart.
    """

    host: str
    port: int
    pid: int | None = None
    coords: Mapping[str, int] = field(default_factory=dict)
    host_name: str = ""
    remote_root: str = ""
    announces: bool = False
    ready: bool = False
    way_down: str = ""
    incarnation: str = ""
    dials: bool = False
    watched: bool = False

    def __str__(self) -> str:
        """Return `host:port`, with brackets around an IPv6 host; `dial` before a first call."""
        if not self.port:
            return "dial"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
