"""Reads the record of communication calls that a rank may keep: `rank/comm/record.py`."""

from __future__ import annotations

import sys
import time
from typing import Any

RECORD = "dap_mux.rank.comm.switch"
C10D = "torch.distributed.distributed_c10d"
MOST_OPEN = 24
MOST_GROUPS = 16
CALLED, STARTED, COMPLETED = "called", "started", "completed"
"""States: the backend has not returned yet; its work is not complete; it is."""


def recorded(flight_recorder: Any, collectives: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `calls`: the oldest open ones and the last of each group, in the order of time.

    `flight_recorder`: that module; `collectives`: what it has told, which knows time-outs. Where
    nothing is recorded there is no such field.
    """
    module: Any = sys.modules.get(RECORD)
    record = module.record() if module is not None else None
    if record is None:
        return {}
    last = [*record.newest.values()][-MOST_GROUPS:]
    is_open = [call for call in [*record.kept.values()] if call.is_open][:MOST_OPEN]
    chosen = {id(call): call for call in (*last, *is_open)}.values()
    members = flight_recorder.members_of_groups(sys.modules[C10D])
    timeouts = {(each["group"], each["number"]): each["timeout"] for each in collectives}
    now, found = time.time_ns(), []
    for call in sorted(chosen, key=lambda one: one.began):
        name = flight_recorder.group_name(*call.group)
        told = _told(call, members.get(call.group[0], []), now)
        found.append({**told, "group": name, "timeout": timeouts.get((name, call.number), 0.0)})
    return {"calls": found}


def _told(call: Any, members: list[int], now: int) -> dict[str, Any]:
    """Return the fields of one, but for those of its group."""
    kind = call.kind
    if 0 <= call.peer < len(members):
        c10d: Any = sys.modules[C10D]
        arrow = "->" if kind == "send" else "<-"
        kind = f"{kind} {c10d.get_rank()}{arrow}{members[call.peer]}"
    state = (STARTED if call.is_open else COMPLETED) if call.returned else CALLED
    return {
        "number": call.number,
        "kind": kind,
        "members": members,
        "p2p": call.kind in ("send", "recv"),
        "sizes": [] if call.shape is None else [[*map(int, call.shape)]],
        "dtypes": [] if call.dtype is None else [str(call.dtype).replace("torch.", "")],
        "state": state,
        "age": max(0.0, (now - call.began) / 1e9),
        "place": call.place,
        "tid": call.tid,
    }
