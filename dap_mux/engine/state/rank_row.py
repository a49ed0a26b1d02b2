"""The row of one rank, as the request `list` and the event `ranks` show it."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from dap_mux.engine.state.bodies import Body


class RankRow(Struct, frozen=True, gc=False, rename="camel"):
    """The state of one rank or worker. Creating a Struct is several times faster than a dict."""

    rank: int
    worker: int | None
    group: str
    coords: dict[str, int] | None
    host: str | None
    pid: int | None
    endpoint: str | None
    state: str
    reason: str | None
    thread: str | None
    function: str | None
    module: str | None
    path: str | None
    line: int | None
    thread_id: int
    exit_code: int | None
    actor: Body | UnsetType = UNSET
