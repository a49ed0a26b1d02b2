"""`dap-mux mcp`: the debugger as tools of a coding agent, on its pipe or over HTTP."""

from __future__ import annotations

import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from dap_mux.frontends.cli.execution import execute, load_config, needing, seconds_of
from dap_mux.frontends.console.session_client import BreakpointsByPath, SessionClient
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets.rank_rows import Row
from dap_mux.system.config import Config
from dap_mux.system.session_files import SessionFile, session_folder
from dap_mux.system.user_files import own_folder, token_of, write_whole

# As in the extra [mcp] of pyproject.toml, like `lsp.PACKAGES`.
PACKAGES: Final = ("mcp>=2,<3",)
NAME: Final = "dap-mux mcp"


@dataclass(frozen=True)
class CommandLine:
    """`link.Ways`, in the words of the other commands."""

    config: Config

    @property
    def show_secrets(self) -> bool:
        """Whether the user wants the agent to see them."""
        return self.config.show_secrets

    async def observe(self, session: SessionFile) -> SessionClient:
        """Connect to look."""
        from dap_mux.frontends.cli.join import follower

        return await follower(session, self.config, NAME)

    async def join(self, session: SessionFile, breakpoints: BreakpointsByPath) -> SessionClient:
        """Connect to drive, and wait until the ranks are reached."""
        from dap_mux.frontends.cli.join import controller, reached

        client = await controller(session, self.config, breakpoints, NAME)
        await reached(client)
        return client

    async def why(self, session: SessionFile, ranks: str, *, slow: bool) -> dict[str, object]:
        """Return the response of `why`; `slow`: who makes the others wait."""
        from dap_mux.frontends.cli.why import of_session

        return await of_session(session, self.config, ranks, attach=False, slow=slow)

    async def stacks_outside(
        self, rows: Sequence[Row], *, every_thread: bool
    ) -> dict[str, object] | None:
        """Return the response of `stacks` for ranks of this machine without a debugger."""
        from dap_mux.frontends.cli.outside import (
            have_begun,
            pids_here,
            stacks_outside,
            undebugged,
        )

        listed = [dict(row) for row in rows]
        pids = pids_here(listed) if undebugged(listed) else None
        if not pids or not await have_begun(listed):
            return None
        return await stacks_outside(pids, every_thread=every_thread)


def main(args: Namespace) -> int:
    """Serve until the agent's client closes the pipe, over HTTP until Ctrl-C."""
    config = load_config(args)
    if args.install_skill is not None:
        return _install_skill(args.install_skill / "dap-mux")
    with needing("`dap-mux mcp` needs an optional package", PACKAGES):
        from dap_mux.frontends.mcp.server import make_server
    if args.http is None:
        make_server(CommandLine(config), args.session or "").run("stdio")
        return 0
    return execute(_serve, args, config)


def _install_skill(folder: Path) -> int:
    """Write what an agent needs to know. Raises UsageError."""
    text = files("dap_mux.frontends.mcp").joinpath("SKILL.md").read_bytes()
    path = folder / "SKILL.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise UsageError(f"--install-skill: {path} cannot be written: {error.strerror}") from None
    print(path)
    return 0


async def _serve(args: Namespace, config: Config) -> int:
    """Serve HTTP until Ctrl-C. Raises UsageError, Refused, DapMuxError."""
    from dap_mux.frontends.mcp.http import PATH, serve
    from dap_mux.frontends.mcp.server import make_server
    from dap_mux.shell.auth import Guard

    idle_s = seconds_of("--lease-timeout", args.lease_timeout)
    file = config.token_file
    if file is None:
        own_folder(session_folder())
        file = session_folder() / "agents.token"
    # A page in a browser comes from this user too: all show the token.
    guard = Guard.for_all(token_of(file))
    try:
        listening = socket.create_server(("127.0.0.1", int(args.http)))
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(f"--http {args.http}: {error}") from None
    url = f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
    print(f"dap-mux: serving agents at {url}, with the token in {file}", file=sys.stderr)
    server = make_server(CommandLine(config), args.session or "", idle_s)
    await serve(server, listening, guard.token.matches, str(file))
    return 0
