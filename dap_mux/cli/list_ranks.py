"""`dap-mux list`: join a session as an observer, ask once where its ranks are, and leave."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import PurePath
from typing import Any

from dap_mux.cli.table import columns
from dap_mux.cli.work import load_config
from dap_mux.config import Config
from dap_mux.printable import one_line
from dap_mux.session_files import HOST_PORT, SessionFile, find

Rank = dict[str, Any]
HEAD = ("GROUP", "RANK", "COORDS", "HOST", "STATE", "REASON", "FUNCTION", "LINE")
LOWEST_PORT = 1024  # `job:3` is rank 3 of group job, `job:5677` a session on host job


def main(args: Namespace) -> int:
    """Print the ranks as a table, or the answer itself as JSON."""
    import anyio

    session, ranks = split(args.session, args.ranks)
    if ranks is not None:
        from dap_mux.rank_sets import parse

        parse(ranks)  # a mistake is pointed at before anybody is asked
    body = anyio.run(fetch, find(session), ranks, load_config(args))
    print(json.dumps(body, indent=1) if args.json else render(body))
    return 0


def split(first: str | None, second: str | None) -> tuple[str | None, str | None]:
    """Tell SESSION from RANKS where only one word was given."""
    if first is None or second is not None or names_session(first):
        return first, second
    return None, first


def names_session(text: str) -> bool:
    """Whether a word reads as HOST:PORT or as a session file's path."""
    match = HOST_PORT.fullmatch(text)
    return (
        text.endswith(".json")
        or "/" in text
        or (match is not None and int(match[3]) >= LOWEST_PORT)
    )


async def fetch(session: SessionFile, ranks: str | None, config: Config) -> dict[str, Any]:
    """Ask a session for its ranks. Raises what `joined` does."""
    from dap_mux.cli.joining import PATIENCE, joined

    async with joined(session, config, "dap-mux list") as client:
        wanted = {} if ranks is None else {"ranks": ranks}
        return await client.request("list", wanted, timeout=PATIENCE)


def render(body: dict[str, Any]) -> str:
    """Lay out the answer of `list`; the group shows where there is more than one."""
    ranks: list[Rank] = body["ranks"]
    many = len({rank["group"] for rank in ranks}) > 1
    table = columns(HEAD, [_row(rank, many) for rank in ranks])
    states = ", ".join(f"{count} {state}" for state, count in body["counts"].items() if count)
    total = "1 rank" if len(ranks) == 1 else f"{len(ranks)} ranks"
    return f"{table}\n{total}: {one_line(states)}" if ranks else "no ranks"


def _row(rank: Rank, many_groups: bool) -> tuple[object, ...]:
    coords = " ".join(f"{name}={place}" for name, place in (rank["coords"] or {}).items())
    line = None if rank["line"] is None else f"{_file(rank['path'])}:{rank['line']}"
    group = rank["group"] if many_groups else None
    reason = rank["reason"]
    if rank["exitCode"] is not None:
        reason = f"exit code {rank['exitCode']}"
    return group, rank["rank"], coords, rank["host"], rank["state"], reason, rank["function"], line


def _file(path: str | None) -> str:
    return PurePath(path).name if path else "?"
