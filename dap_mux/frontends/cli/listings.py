"""Commands that show what a session knows: `list`, `sessions`, `config`, `cast`, `stacks`, ..."""

from __future__ import annotations

import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dap_mux.frontends.cli.execution import load_config
from dap_mux.frontends.cli.outside import (
    NOBODY_DEBUGS,
    endpoints_in,
    have_begun,
    machines_in,
    pids_here,
    pids_in,
    stacks_on_machines,
    stacks_outside,
    undebugged,
)
from dap_mux.frontends.console.screen import (
    IN_MAIN,
    is_terminal,
    show_cast,
    show_compare,
    show_stacks,
)
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.pure.printable import aligned, one_line
from dap_mux.system.config import Config
from dap_mux.system.config.options import schema
from dap_mux.system.session_files import HOST_PORT, HOW_TO_START, SessionFile, find, running

if TYPE_CHECKING:
    from dap_mux.frontends.console.screen import Screen


Body = dict[str, Any]
NO_DEBUGGER: Final = "no debugger"
FIRST_LINE: Final = "before its first line"
MAX_LOOKED: Final = 64
"""Of more ranks `list` does not say whether they run: py-spy takes 0.06 s of a processor each."""
WAIT_FOR_ONE: Final = (
    "no debugger is attached to these ranks, and they wait for one before their first line, or are "
    "not to be seen from here: attach an editor or `dap-mux console`"
)
MIN_SESSION_PORT = 1024  # `job:3` is rank 3 of group job, `job:5677` a session on host job


def ranks(args: Namespace) -> int:
    """Print the ranks as a table, or the response as JSON."""
    import asyncio  # nothing here needs anyio, which takes 20 ms to import

    from dap_mux.frontends.console.screen import parse_list_arguments
    from dap_mux.pure.rank_sets import parse

    session, arguments = split_session(args.arguments)
    wanted, layout = parse_list_arguments(" ".join(arguments), default="all")
    parse(wanted)  # report a mistake before connecting
    body = asyncio.run(fetch(find(session), wanted, load_config(args)))
    few = len(body["ranks"]) <= MAX_LOOKED
    if few and not args.json and undebugged(body["ranks"]):
        body = _named_state(body, asyncio.run(have_begun(body["ranks"])))
    present(args, body, lambda screen, body: show(screen, body, layout))
    return 0


def _named_state(body: Body, begun: bool | None) -> Body:
    """Say of ranks that no debugger is attached to whether they run (None: that is not known)."""
    if begun is None:
        return body
    state, reason = ("running", NO_DEBUGGER) if begun else (NOBODY_DEBUGS, FIRST_LINE)
    rows = [
        {**row, "state": state, "reason": reason} if row["state"] == NOBODY_DEBUGS else row
        for row in body["ranks"]
    ]
    counts = {state if key == NOBODY_DEBUGS else key: n for key, n in body["counts"].items() if n}
    return {"ranks": rows, "counts": counts}


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
    from dap_mux.frontends.console.screen import ranks_table
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
    """Print the options that are effective in this folder, or the schema of all."""
    if args.action == "schema":
        print(json.dumps(schema(), indent=1))
        return 0
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
    return "\n".join(aligned(lines))


def _cell(value: object) -> str:
    return "" if value is None else one_line(str(value))


# `dap-mux cast` and `dap-mux compare`: send one request as an observer, and leave.

RANK_TIMEOUT_S: Final = 5.0
SESSION_TIMEOUT_S: Final = 10.0  # beyond the time of its ranks


def cast(args: Namespace) -> int:
    """Send a command to ranks; 1 if one of them failed or did not respond."""
    from dap_mux.pure.rank_sets import split_leading

    session, arguments = split_optional_session(args.arguments)
    ranks, command = split_leading(" ".join(arguments))
    timeout = seconds(args.timeout)
    request = {"ranks": ranks, "command": command, "timeout": timeout}
    body = send(session, load_config(args), "cast", request, timeout)
    present(args, body, lambda screen, body: show_cast(screen, {**body, "inMain": ""}))
    if body["inMain"] and not args.json:  # scripts read values from standard output
        print(f"dap-mux: {{{body['inMain']}}}: {IN_MAIN}", file=sys.stderr)
    return 1 if body["errors"] or body["missing"] else 0


def compare(args: Namespace) -> int:
    """Compare an expression's values; 1 if a rank did not respond."""
    session, arguments = split_optional_session(args.arguments)
    request: Body = {"expression": " ".join(arguments)}
    if args.ranks is not None:
        from dap_mux.pure.rank_sets import parse, with_group

        request["ranks"] = with_group(args.ranks)
        parse(request["ranks"])  # report a mistake before connecting
    if args.tolerance is not None:
        request["tolerance"] = number(args.tolerance, "--tolerance")
    body = send(session, load_config(args), "compare", request, RANK_TIMEOUT_S)
    present(args, body, show_compare)
    return 1 if body.get("errors") or body["missing"] else 0


def split_optional_session(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Split off SESSION; a single argument is never one."""
    return split_session(arguments) if len(arguments) > 1 else (None, arguments)


def seconds(text: str) -> float:
    """Parse `--timeout`. Raises UsageError."""
    value = number(text, "--timeout")
    if value <= 0:
        raise UsageError(f"--timeout {text}: must be greater than 0 seconds")
    return value


def number(text: str, flag: str) -> float:
    """Parse a number that is not negative. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise UsageError(f"{flag} {text}: must be a number of 0 or more")
    return value


def send(
    session: str | None, config: Config, command: str, arguments: Body, timeout: float
) -> Body:
    """Join, send one request and leave."""
    import anyio

    return anyio.run(_send, find(session), config, command, arguments, timeout)


async def _send(
    session: SessionFile, config: Config, command: str, arguments: Body, timeout: float
) -> Body:
    from dap_mux.frontends.cli.join import controller, observer, reached

    async with observer(session, config, f"dap-mux {command}") as client:
        asked = {"ranks": arguments.get("ranks", "all")}
        rows = (await client.request("list", asked, timeout=SESSION_TIMEOUT_S))["ranks"]
        if not undebugged(rows):
            return await client.request(command, arguments, timeout=timeout + SESSION_TIMEOUT_S)
    if not await have_begun(rows):
        raise DapMuxError(WAIT_FOR_ONE)
    debugger = await controller(session, config, {})  # for a moment: they run already
    try:
        await reached(debugger)
        return await debugger.request(command, arguments, timeout_s=timeout + SESSION_TIMEOUT_S)
    finally:
        await debugger.disconnect()


# `dap-mux stacks`: where all ranks are, as one tree of their stacks, once or again and again.

WATCH_INTERVAL_S: Final = 2.0
NEW_PAGE: Final = "\x1b[H\x1b[2J"
Ask = Callable[[], Awaitable[Body]]
Source = AbstractAsyncContextManager[Ask]


def stacks(args: Namespace) -> int:
    """Show the stacks of ranks; 1 if a rank did not tell. `--watch` goes on until Ctrl-C."""
    import anyio

    source = _source(args)
    if not args.watch:
        return anyio.run(_once, args, source)
    with suppress(KeyboardInterrupt):
        anyio.run(_watch, args, source)
    return 0


def _source(args: Namespace) -> Source:
    """Return what opens the way to ask. Raises UsageError."""
    endpoints = endpoints_in(args.arguments)
    if endpoints:
        every_thread = args.which_threads == "all"
        if (pids := pids_in(endpoints)) is not None:
            return nullcontext(partial(stacks_outside, pids, every_thread=every_thread))
        if (sources := machines_in(endpoints)) is not None:
            ask = partial(stacks_on_machines, sources, args.job, every_thread=every_thread)
            return nullcontext(ask)
        raise UsageError(
            f"{' '.join(endpoints)}: name a session, processes (pid:4711,4712), or machines "
            "without a port (ssh:node1, slurm:4711, k8s:job/train)"
        )
    session, ranks = session_and_ranks(args.arguments)
    return _session(args, session, {"ranks": ranks, "threads": args.which_threads})


@asynccontextmanager
async def _session(args: Namespace, session: str | None, request: Body) -> AsyncIterator[Ask]:
    from dap_mux.frontends.cli.join import observer

    async with observer(find(session), load_config(args), "dap-mux stacks") as client:
        timeout = RANK_TIMEOUT_S + SESSION_TIMEOUT_S
        asked = {"ranks": request["ranks"]}
        rows = (await client.request("list", asked, timeout=SESSION_TIMEOUT_S))["ranks"]
        if undebugged(rows) and (pids := pids_here(rows)) and await have_begun(rows):
            every_thread = args.which_threads == "all"
            yield partial(stacks_outside, pids, every_thread=every_thread)
            return
        yield partial(client.request, "stacks", request, timeout=timeout)


async def _once(args: Namespace, source: Source) -> int:
    async with source as ask:
        body = await ask()
    _show(args, body)
    return 1 if body["missing"] else 0


async def _watch(args: Namespace, source: Source) -> None:
    """Ask again and again, and show what is not as it was."""
    import anyio

    shown: Body = {}
    async with source as ask:
        while True:
            body = await ask()
            if body != shown:
                _show(args, body, of_several=True)
            shown = body
            await anyio.sleep(WATCH_INTERVAL_S)


def _show(args: Namespace, body: Body, *, of_several: bool = False) -> None:
    if args.json and of_several:
        print(json.dumps(body), flush=True)
        return
    if of_several:
        print(NEW_PAGE if is_terminal() else "", flush=True)
    present(args, body, partial(show_stacks, library=args.library))
