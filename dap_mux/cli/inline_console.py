"""`run --console`: the console in the terminal of the job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from dap_mux.cli.console import converse, entry_lines, open_client
from dap_mux.config import Config
from dap_mux.errors import DapMuxError
from dap_mux.session_files import find, session_folder

if TYPE_CHECKING:
    from dap_mux.console.console import Console


class InlineConsole:
    """The console in the terminal of `dap-mux run`; the job goes on when the user leaves it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._console: Console | None = None

    async def run(self) -> None:
        """Join our own session and run a console; if that fails, say so, and the job goes on."""
        try:
            await self._run()
        except (DapMuxError, OSError) as error:
            print(f"dap-mux: the console ended: {error}", file=sys.stderr)

    async def _run(self) -> None:
        from dap_mux.console.console import Console
        from dap_mux.console.screen import screen_for_stdout

        session = find(str(session_folder() / f"{os.getpid()}.json"))
        entry = await entry_lines(session, self._config)
        client = await open_client(session, self._config, entry)
        try:
            self._console = Console(client, screen_for_stdout(), shows_output=False)
            for path, line in entry.items():
                self._console.breakpoints.remember(path, line)
            await converse(self._console)
        finally:
            self._console = None
            await client.close()

    def interrupt(self) -> bool:
        """Handle a Ctrl-C; False if no console runs, or it does not handle it."""
        return self._console is not None and self._console.interrupt()
