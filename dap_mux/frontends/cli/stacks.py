"""`dap-mux stacks`: where all ranks are, as one tree of their stacks, once or again and again."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final

import anyio

from dap_mux.frontends.cli.execution import load_config
from dap_mux.frontends.cli.listings import Body, present, session_and_ranks
from dap_mux.frontends.cli.outside import endpoints_in, pids_in, stacks_outside
from dap_mux.frontends.console.results import show_stacks
from dap_mux.frontends.console.screen import is_terminal
from dap_mux.pure.errors import UsageError

RANK_TIMEOUT_S: Final = 5.0
SESSION_TIMEOUT_S: Final = 10.0  # beyond the time of its ranks
WATCH_INTERVAL_S: Final = 2.0
NEW_PAGE: Final = "\x1b[H\x1b[2J"
Ask = Callable[[], Awaitable[Body]]
Source = Callable[[], AbstractAsyncContextManager[Ask]]


def main(args: Namespace) -> int:
    """Show the stacks of ranks; 1 if a rank did not tell. `--watch` goes on until Ctrl-C."""
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
        pids = pids_in(endpoints)
        if pids is None:
            raise UsageError(f"{' '.join(endpoints)}: name a session, or processes (pid:4711,4712)")
        return partial(_processes, pids, every_thread=args.which_threads == "all")
    session, ranks = session_and_ranks(args.arguments)
    return partial(_session, args, session, {"ranks": ranks, "threads": args.which_threads})


@asynccontextmanager
async def _processes(pids: list[int], *, every_thread: bool) -> AsyncIterator[Ask]:
    yield partial(stacks_outside, pids, every_thread=every_thread)


@asynccontextmanager
async def _session(args: Namespace, session: str | None, request: Body) -> AsyncIterator[Ask]:
    from dap_mux.frontends.cli.join import observer
    from dap_mux.system.session_files import find

    async with observer(find(session), load_config(args), "dap-mux stacks") as client:
        timeout = RANK_TIMEOUT_S + SESSION_TIMEOUT_S
        yield partial(client.request, "stacks", request, timeout=timeout)


async def _once(args: Namespace, source: Source) -> int:
    async with source() as ask:
        body = await ask()
    _show(args, body)
    return 1 if body["missing"] else 0


async def _watch(args: Namespace, source: Source) -> None:
    """Ask again and again, and show what is not as it was."""
    shown: Body = {}
    async with source() as ask:
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
