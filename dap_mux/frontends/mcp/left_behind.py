"""Tells before ranks are moved whether they would then wait for those that stay stopped."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dap_mux.frontends.console.session_client import settled
from dap_mux.frontends.mcp.answers import Unable
from dap_mux.frontends.mcp.link import Link, chosen
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.why.waits import is_collective
from dap_mux.pure.rank_sets.rank_rows import Row, id_of
from dap_mux.system.user_files import open_regular

STEPS: Final = ("next", "step")
BACKWARD: Final = "backward"
"""A call of autograd's, in which DDP reduces gradients."""
JOINED: Final = (
    "(lambda m: bool(m('torch.distributed') and m('torch.distributed').is_available() and "
    "m('torch.distributed').is_initialized() and m('torch.distributed').get_world_size() > 1 or "
    "m('mpi4py.MPI') and m('mpi4py.MPI').COMM_WORLD.size > 1))(__import__('sys').modules.get)"
)
"""In a rank: whether it has joined others in a library whose calls wait for all."""


async def check_none_is_left(link: Link, moved: Sequence[Row], action: str) -> None:
    """Raise Unable where `moved` would wait in a collective for ranks that stay stopped."""
    ids = {id_of(row) for row in moved}
    stay = [row for row in await link.rows("all") if settled(row) and id_of(row) not in ids]
    move = [row for row in moved if settled(row)]
    if not stay or not move or action == "pause":
        return
    calls = {call for row in move for call in called(row)} if action in STEPS else {"collective"}
    named, held, both = (
        link.client.ranks.fold([id_of(row)[:2] for row in rows])
        for rows in (move, stay, [*move, *stay])
    )
    if calls and await _joined(link, named):
        where = " or ".join(sorted(calls)) if action in STEPS else "their next collective"
        raise Unable(
            "would-wait",
            f"{named} would wait in {where} for {held}, which would stay stopped: move them "
            "together, or pass `anyway`",
            [both],
        )


async def _joined(link: Link, ranks: str) -> bool:
    """Return whether any of these ranks has joined others; False where none answers."""
    with suppress(DapMuxError):
        body = await link.ask("compare", {"expression": JOINED, "ranks": chosen(ranks)})
        return any(one["value"] == "True" for one in body["values"])
    return False


def called(row: Row) -> Iterator[str]:
    """Yield the collectives that the statement at a rank's line calls."""
    with suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        with open_regular(Path(str(row["path"]))) as file:
            tree = ast.parse(file.read())
        line = int(row["line"] or 0)
        around = (one for one in ast.walk(tree) if isinstance(one, ast.stmt))
        here = [one for one in around if one.lineno <= line <= (one.end_lineno or 0)]
        for node in _of_its_own(max(here, key=lambda one: one.lineno)):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name == BACKWARD or is_collective(name):
                yield name


def _of_its_own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield a statement's nodes, without those of statements in it."""
    for node in ast.iter_child_nodes(statement):
        if not isinstance(node, ast.stmt):
            yield from ast.walk(node)
