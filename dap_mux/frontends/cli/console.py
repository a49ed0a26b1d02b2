"""`dap-mux console` and `console --serve`: a console in this terminal, or served to others."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dap_mux.frontends.cli.execution import execute, load_config
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import DapMuxError, Refused, UsageError
from dap_mux.system.config import Address, Config
from dap_mux.system.session_files import SessionFile, find, own_session

if TYPE_CHECKING:
    from dap_mux.frontends.console.console import Console
    from dap_mux.frontends.console.session_client import SessionClient


# `run --console`, `attach --console`: the console in the terminal of the session.


class InlineConsole:
    """The console in the terminal of a session, which goes on when the user leaves it.

    `shows_output`: whether the console is to show what ranks print.
    """

    takes_terminal = True

    def __init__(self, config: Config, *, shows_output: bool) -> None:
        self._config = config
        self._shows_output = shows_output
        self._console: Console | None = None

    async def run(self) -> bool:
        """Join our own session and run a console; return whether no debugger is left.

        If that fails, say so, and the session goes on.
        """
        shows_output = self._shows_output
        try:
            console = await open_console(own_session(), self._config, shows_output=shows_output)
            self._console = console
            try:
                await converse(console)
            finally:
                self._console = None
                await console.client.close()
        except (DapMuxError, OSError) as error:
            print(f"dap-mux: the console ended: {error}", file=sys.stderr)
            return False
        return console.was_last

    def interrupt(self) -> bool:
        """Handle a Ctrl-C; False if no console runs, or it does not handle it."""
        return self._console is not None and self._console.interrupt()


EntryLines = Mapping[str, int]
"""The line of each file where ranks stop first."""


def main(args: Namespace) -> int:
    """Run a console here, or serve consoles with `--serve`."""
    session, config = find(args.session), load_config(args)
    if args.serve is None:
        return execute(_run, session, config, args.script)
    return execute(_serve, session, config, serve_address(args.serve))


def serve_address(text: str) -> Address:
    """Read `--serve`. Raises UsageError, Refused."""
    try:
        address = Address.parse(text)
    except ValueError:
        raise UsageError(f"--serve {text!r}: expected [HOST:]PORT") from None
    if not is_loopback(address.host):
        raise Refused(
            f"refused to serve consoles on {address.host}: anyone who can connect could run "
            "code in every rank. Serve them on 127.0.0.1 and forward the port with ssh -L"
        )
    return address


# In this terminal


async def _run(session: SessionFile, config: Config, script: str | None) -> int:
    import anyio

    console = await open_console(session, config)
    code = 0
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        with anyio.open_signal_receiver(*signals) as received:
            async with anyio.create_task_group() as tasks:

                async def handle_signals() -> None:
                    nonlocal code
                    async for number in received:
                        if number is not signal.SIGINT or not console.interrupt():
                            code = 128 + number
                            tasks.cancel_scope.cancel()

                tasks.start_soon(handle_signals)
                await converse(console, f"%source {script}" if script else "")
                tasks.cancel_scope.cancel()
    finally:
        await console.client.close()
    return code or int(console.failed)


async def open_console(
    session: SessionFile, config: Config, *, shows_output: bool = True
) -> Console:
    """Join a session with a console on standard output; its client is to be closed."""
    from dap_mux.frontends.console.console import Console
    from dap_mux.frontends.console.screen import screen_for_stdout

    entry = await entry_lines(session, config)
    client = await open_client(session, config, entry)
    screen = screen_for_stdout(errors_apart=True)
    console = Console(client, screen, shows_output=shows_output, words=config.words)
    console.breakpoints.folders = tuple(str(Path(path).parent) for path in session.entry)
    console.breakpoints.stop_first(entry)
    return console


async def converse(console: Console, first: str = "") -> None:
    """Run a console on the terminal, or with plain lines if there is none; begin with `first`."""
    from dap_mux.frontends.console.screen import is_terminal

    typed = sys.stdin.isatty() and sys.stdout.isatty()
    if typed and is_terminal():
        from dap_mux.frontends.console.terminal import on_terminal

        await on_terminal(console, os.environ, Path(os.environ.get("HOME", "/")), first)
        return
    from dap_mux.frontends.console import plain

    prompts = plain.dumb_terminal(console) if typed else None
    console.greet()
    await plain.converse(console, plain.read_stdin().next, prompts, first=first)


async def entry_lines(session: SessionFile, config: Config) -> EntryLines:
    """Return where ranks stop first; {} unless all wait for a debugger, which we shall be."""
    from dap_mux.frontends.cli.join import observer

    if not session.entry:
        return {}
    async with observer(session, config, "dap-mux console") as client:
        rows = (await client.request("list"))["ranks"]
    return session.entry if all(row["state"] == "waiting" for row in rows) else {}


async def open_client(session: SessionFile, config: Config, entry: EntryLines) -> SessionClient:
    """Join a session as a controller, with breakpoints at these lines."""
    from dap_mux.frontends.cli.join import controller

    breakpoints = {path: [{"line": line}] for path, line in entry.items()}
    return await controller(session, config, breakpoints)


# Served


@contextmanager
def _watched(writer: asyncio.StreamWriter) -> Iterator[None]:
    """End this connection if its peer is gone without a word, as the session does with its own."""
    from dap_mux.shell import sockets
    from dap_mux.shell.timers import Timers

    sock = sockets.tcp_of(writer.transport)
    sockets.prepare(sock)
    ends = sockets.LivenessMonitor(sock, lambda _: writer.transport.abort(), Timers())
    try:
        yield
    finally:
        ends.stop()


async def _serve(session: SessionFile, config: Config, address: Address) -> int:
    from dap_mux.frontends.cli.join import observer
    from dap_mux.frontends.console.server import served
    from dap_mux.shell.auth import Guard

    async def join(first: str) -> SessionClient:
        # Who says `continue` before anything else has ranks in mind that wait for a debugger.
        entry = {} if first == "continue" else await entry_lines(session, config)
        return await open_client(session, config, entry)

    async with (
        observer(session, config, "dap-mux console --serve") as watch,
        served(address, join, Guard().trusts, _watched, config.words) as port,
    ):
        where = Address(address.host, port)
        print(
            f"dap-mux: serving consoles on {where}; try `nc {where.host} {where.port}`",
            file=sys.stderr,
        )
        await watch.wait_for(lambda: not watch.open, timeout=None)
    return 0
