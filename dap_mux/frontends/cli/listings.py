"""`dap-mux list`, `sessions` and `config show`: what there is, as a table or as JSON."""

from __future__ import annotations

import json
import re
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dap_mux.frontends.cli.execution import load_config
from dap_mux.pure.printable import one_line
from dap_mux.system.config import Config
from dap_mux.system.session_files import HOST_PORT, HOW_TO_START, SessionFile, find, running

if TYPE_CHECKING:
    from dap_mux.frontends.console.screen import Screen

Body = dict[str, Any]
MIN_SESSION_PORT = 1024  # `job:3` is rank 3 of group job, `job:5677` a session on host job


def ranks(args: Namespace) -> int:
    """Print the ranks as a table, or the response as JSON."""
    import asyncio  # nothing here needs anyio, which takes 20 ms to import

    from dap_mux.frontends.console.results import parse_list_arguments
    from dap_mux.pure.rank_sets import parse

    session, arguments = split_session(args.arguments)
    wanted, layout = parse_list_arguments(" ".join(arguments), default="all")
    parse(wanted)  # report a mistake before connecting
    body = asyncio.run(fetch(find(session), wanted, load_config(args)))
    present(args, body, lambda screen, body: show(screen, body, layout))
    return 0


def present(args: Namespace, body: Body, how: Callable[[Screen, Body], None]) -> None:
    """Print a response as JSON, or show it on the screen that fits standard output."""
    if args.json:
        print(json.dumps(body, indent=1))
        return
    from dap_mux.frontends.console.screen import screen_for_stdout

    how(screen_for_stdout(), body)


def session_and_ranks(arguments: list[str]) -> tuple[str | None, str]:
    """Split off SESSION; the rest is a rank set, all for none. Raises RankSetError."""
    from dap_mux.pure.rank_sets import parse, with_group

    session, rest = split_session(arguments)
    ranks = with_group(" ".join(rest) or "all")
    parse(ranks)  # report a mistake before connecting
    return session, ranks


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


async def fetch(session: SessionFile, ranks: str, config: Config) -> Body:
    """Request the ranks of a session. Raises what `observer` does."""
    from dap_mux.frontends.cli.join import REQUEST_TIMEOUT_S, observer

    async with observer(session, config, "dap-mux list") as client:
        return await client.request("list", {"ranks": ranks}, timeout=REQUEST_TIMEOUT_S)


def show(screen: Screen, body: Body, layout: str) -> None:
    """Show the response of `list`."""
    from dap_mux.frontends.console.results import ranks_table
    from dap_mux.pure.rank_sets.rank_rows import count_text

    rows = body["ranks"]
    if not rows:
        screen.say("no ranks")
        return
    screen.table(ranks_table(rows, layout))
    workers = sum(row["worker"] is not None for row in rows)
    counts = [_count(len(rows) - workers, "rank")] + [_count(workers, "worker")] * bool(workers)
    screen.say(f"{' and '.join(counts)}: {count_text(body['counts'])}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


def sessions(args: Namespace) -> int:
    """Print the running sessions, oldest first; having none is not a failure."""
    found = running()
    if args.json:
        print(
            json.dumps(
                [{**session.public(), "started": session.started} for session in found], indent=1
            )
        )
    elif found:
        print(columns(("SESSION", "PID", "GROUPS", "STARTED"), [_row(each) for each in found]))
    else:
        print(f"you have no running session on this machine; {HOW_TO_START}")
    return 0


def _row(session: SessionFile) -> tuple[object, ...]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.started))
    return session.address, session.pid, ",".join(session.groups), started


def config(args: Namespace) -> int:
    """Print the options that are effective in this folder."""
    rows = load_config(args).explain()
    if args.json:
        plain = {row.name: {"value": row.value, "origin": row.origin} for row in rows}
        print(json.dumps(plain, indent=1))
    else:
        lines = [(row.name, json.dumps(row.value), row.origin) for row in rows]
        print(columns(("OPTION", "VALUE", "FROM"), lines))
    return 0


def columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Left-justify rows under their heads; None is empty, and empty columns are omitted."""
    cells = [[_cell(value) for value in row] for row in rows]
    shown = [index for index in range(len(head)) if any(row[index] for row in cells)]
    lines = [[row[index] for index in shown] for row in [list(head), *cells]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(shown))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    return "" if value is None else one_line(str(value))
