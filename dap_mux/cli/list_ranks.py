"""`dap-mux list`: join a session as an observer, request its ranks once, and leave."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from dap_mux.cli.execution import load_config
from dap_mux.config import Config
from dap_mux.session_files import HOST_PORT, SessionFile, find

if TYPE_CHECKING:
    from dap_mux.console.screen import Screen

MIN_SESSION_PORT = 1024  # `job:3` is rank 3 of group job, `job:5677` a session on host job


def main(args: Namespace) -> int:
    """Print the ranks as a table, or the response as JSON."""
    import asyncio  # nothing here needs anyio, which takes 20 ms to import

    from dap_mux.console.results import parse_list_arguments
    from dap_mux.console.screen import screen_for_stdout
    from dap_mux.rank_sets import parse

    session, arguments = split_session(args.arguments)
    ranks, layout = parse_list_arguments(" ".join(arguments), default="all")
    parse(ranks)  # report a mistake before connecting
    body = asyncio.run(fetch(find(session), ranks, load_config(args)))
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        show(screen_for_stdout(), body, layout)
    return 0


def split_session(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Split off SESSION, if the first argument reads as one."""
    if arguments and names_session(arguments[0]):
        return arguments[0], arguments[1:]
    return None, arguments


def names_session(text: str) -> bool:
    """Whether an argument reads as HOST:PORT or as a session file's path."""
    match = re.fullmatch(HOST_PORT, text)
    return (
        text.endswith(".json")
        or "/" in text
        or (match is not None and int(match[3]) >= MIN_SESSION_PORT)
    )


async def fetch(session: SessionFile, ranks: str, config: Config) -> dict[str, Any]:
    """Request the ranks of a session. Raises what `observer` does."""
    from dap_mux.cli.join import REQUEST_TIMEOUT_S, observer

    async with observer(session, config, "dap-mux list") as client:
        return await client.request("list", {"ranks": ranks}, timeout=REQUEST_TIMEOUT_S)


def show(screen: Screen, body: dict[str, Any], layout: str) -> None:
    """Show the response of `list`."""
    from dap_mux.console.results import ranks_table
    from dap_mux.rank_rows import count_text

    ranks = body["ranks"]
    if not ranks:
        screen.say("no ranks")
        return
    screen.table(ranks_table(ranks, layout))
    workers = sum(row["worker"] is not None for row in ranks)
    counts = [_count(len(ranks) - workers, "rank")] + [_count(workers, "worker")] * bool(workers)
    screen.say(f"{' and '.join(counts)}: {count_text(body['counts'])}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
