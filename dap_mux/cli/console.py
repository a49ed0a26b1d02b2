"""`dap-mux console` and `console --serve`: the console, in this terminal or in others."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dap_mux.addresses import is_loopback
from dap_mux.cli.execution import execute, load_config
from dap_mux.config import Address, Config
from dap_mux.errors import DapMuxError, Refused, UsageError
from dap_mux.session_files import SessionFile, find

if TYPE_CHECKING:
    from dap_mux.console.console import Console
    from dap_mux.console.link import Link

INTERRUPTED = 128 + signal.SIGINT
Stops = Mapping[str, int]
"""Files, and the line in each at which ranks are to stop first."""


def main(args: Namespace) -> int:
    """Talk with the user of this terminal or pipe, or serve others who bring one."""
    session, config = find(args.session), load_config(args)
    if args.serve is None:
        return execute(_talk, (session, config))
    return execute(_serve, (session, config, serve_address(args.serve)))


def serve_address(text: str) -> Address:
    """Read `--serve`. Raises UsageError, Refused."""
    try:
        address = Address.parse(text)
    except ValueError:
        raise UsageError(f"--serve {text!r}: allowed: [HOST:]PORT") from None
    if not is_loopback(address.host):
        raise Refused(
            f"refused to serve consoles on {address.host}: whoever reaches one can run code in "
            "every rank. Serve them on 127.0.0.1, and forward the port with ssh -L"
        )
    return address


# This terminal


async def _talk(order: tuple[SessionFile, Config]) -> int:
    import anyio

    from dap_mux.console.console import Console
    from dap_mux.console.screen import screen_for_stdout

    link = await open_link(*order)
    console = Console(link, screen_for_stdout())
    code = 0
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        with anyio.open_signal_receiver(*signals) as heard:
            async with anyio.create_task_group() as tasks:

                async def heed() -> None:
                    nonlocal code
                    async for number in heard:
                        if number is not signal.SIGINT or not console.interrupt():
                            code = 128 + number
                            tasks.cancel_scope.cancel()

                tasks.start_soon(heed)
                await converse(console)
                tasks.cancel_scope.cancel()
    finally:
        await link.close()
    return code or int(console.failed)


async def converse(console: Console) -> None:
    """Talk by terminal, or by plain lines when there is none."""
    from dap_mux.console.screen import is_terminal

    if is_terminal() and sys.stdin.isatty():
        from dap_mux.console.terminal import on_terminal

        await on_terminal(console, os.environ, Path(os.environ.get("HOME", "/")))
    else:
        from dap_mux.console import plain

        console.greet()
        await plain.converse(console, plain.lines_of_stdin().next)


async def open_link(session: SessionFile, config: Config, stops: Stops | None = None) -> Link:
    """Join a session as a client that controls it, with these breakpoints."""
    from dap_mux.cli.joining import driving

    lines = {path: [{"line": line}] for path, line in (stops or {}).items()}
    return await driving(session, config, lines)


# Other people's terminals


async def _serve(order: tuple[SessionFile, Config, Address]) -> int:
    from dap_mux.cli.joining import joined
    from dap_mux.console import serving
    from dap_mux.shell.auth import Guard

    session, config, (host, port) = order
    door: Callable[[], Awaitable[Link]] = lambda: open_link(session, config)  # noqa: E731
    async with joined(session, config, "dap-mux console --serve") as watch:
        try:
            server = await serving.serve(host, port, door, Guard().trusts)
        except OSError as error:
            raise DapMuxError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        where = Address(host, server.port)
        print(f"dap-mux: consoles on {where}; try `nc {where.host} {where.port}`", file=sys.stderr)
        try:
            await watch.wait_for(lambda: not watch.open, timeout=None)
        finally:
            await server.close()
    return 0
