"""Reads torch's record of this rank's collectives, and the rank's number in its job.

torch and MPI are never imported, and what is private in them is guarded by who calls this.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

C10D = "torch.distributed.distributed_c10d"
INNER_C10D = "torch._C._distributed_c10d"
DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
NEWEST = 8
"""So many are told of each group."""
NO_NAMES = ("", "undefined")
RANKS = tuple(
    "RANK OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK SLURM_PROCID"
    " PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX JOB_COMPLETION_INDEX".split()
)
"""Those of `rank/environ.py`, in its order: a rank may have no dap-mux to import it from."""


def recorded() -> dict[str, Any]:
    """Return `recorder`: on, off or "", and `collectives`, the newest last."""
    c10d: Any = sys.modules.get(C10D)
    if c10d is None or not c10d.is_initialized():
        return {}
    inner = sys.modules.get(INNER_C10D)
    dumps = [json.loads(getattr(inner, name)()) for name in DUMPS if hasattr(inner, name)]
    # Without a buffer not even the groups are recorded.
    if not any(dump.get("entries") or dump.get("pg_config") for dump in dumps):
        return {"recorder": "off"}
    entries = [entry for dump in dumps for entry in dump.get("entries") or ()]
    newest = newest_of_each_group(entries)
    members = members_of_groups(c10d)
    now = time.time_ns()
    return {"recorder": "on", "collectives": [told(each, members, now) for each in newest]}


def newest_of_each_group(entries: list[Any]) -> list[Any]:
    """Return entries in the order of time."""
    left: dict[str, int] = {}
    found = []
    for entry in sorted(entries, key=lambda one: one["time_created_ns"], reverse=True):
        name = str(entry["process_group"][0])
        left[name] = left.get(name, NEWEST) - 1
        if left[name] >= 0:
            found.append(entry)
    return found[::-1]


def told(entry: dict[str, Any], members: dict[str, list[int]], now: int) -> dict[str, Any]:
    """Return the fields of one."""
    name, description = map(str, entry["process_group"])
    p2p = bool(entry["is_p2p"])
    return {
        "group": group_name(name, description),
        "number": entry["p2p_seq_id" if p2p else "collective_seq_id"],
        "kind": entry["profiling_name"].partition(":")[2] or entry["profiling_name"],
        "members": members.get(name, []),
        "p2p": p2p,
        "sizes": [each if isinstance(each, list) else [each] for each in entry["input_sizes"]],
        "dtypes": entry["input_dtypes"],
        # gloo leaves those that are over at `scheduled`; then they are retired.
        "state": "completed" if entry["retired"] else entry["state"],
        "age": max(0.0, (now - entry["time_created_ns"]) / 1e9),
        "timeout": entry["timeout_ms"] / 1e3,
    }


def group_name(name: str, description: str) -> str:
    """Return a name that no other group has: groups of one mesh have one description."""
    if description in NO_NAMES:
        return name
    return description if description == "default_pg" else f"{description}/{name}"


def members_of_groups(c10d: Any) -> dict[str, list[int]]:
    """Return the global ranks of each group, in the order of their ranks in it."""
    world = c10d._world  # noqa: SLF001
    names, found = dict(world.pg_names), {}
    for group, ranks in dict(world.pg_group_ranks).items():
        if group in names:
            found[str(names[group])] = [int(rank) for rank in sorted(ranks, key=ranks.get)]
    return found


def world_rank(usable: Any) -> int:
    """Return the number of this rank, by torch, MPI or its launcher; -1 for unknown.

    `usable`: tells whether MPI may be called in this thread.
    """
    c10d: Any = sys.modules.get(C10D)
    if c10d is not None and c10d.is_initialized():
        return int(c10d.get_rank())
    library: Any = sys.modules.get("mpi4py.MPI")
    if library is not None and usable(library):
        return int(library.COMM_WORLD.Get_rank())
    told = (os.environ.get(name, "") for name in RANKS)
    return next((int(text) for text in told if text.isdigit()), -1)
