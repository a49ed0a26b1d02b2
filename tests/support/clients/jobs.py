"""Jobs of `dap-mux run` as clients find them: in a session, or held at a line by an editor."""

from __future__ import annotations

from dap_mux.client import DapClient
from tests.support.processes.commands import LIMIT, Command, User, line_of, listed
from tests.support.processes.run_command import LAUNCH, start


async def serving(user: User, *words: str, n: int, **env: str) -> Command:
    """Start `run -n N`, and wait until it serves."""
    run = await start(user, *words, n=n, **env)
    await run.session()
    return run


async def held(
    user: User, path: str, mark: str, *words: str, n: int, launch: bool = False
) -> tuple[Command, DapClient]:
    """Start a program whose ranks all stand at a marked line, and the editor that holds them there.

    `launch`: it says that it has launched them.
    """
    run = await start(user, path, *words, n=n)
    editor, line = await run.client("editor"), line_of(path, mark)
    await editor.handshake(LAUNCH, breakpoints={path: [line]}, launch=launch, timeout=LIMIT)
    await listed(editor, "line", *[line] * n)
    return run, editor
