"""`run --console`: the console in the terminal of the job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from dap_mux.cli.console import Stops, converse, open_link
from dap_mux.config import Config
from dap_mux.errors import DapMuxError
from dap_mux.session_files import find, session_folder

if TYPE_CHECKING:
    from dap_mux.console.console import Console


class InlineConsole:
    """The console in the terminal of `dap-mux run`, whose job goes on when it is left."""

    def __init__(self, config: Config, stops: Stops) -> None:
        self._config = config
        self._stops = stops
        self._console: Console | None = None

    async def run(self) -> None:
        """Join our own session and talk; a failure is told, and the job goes on."""
        try:
            await self._run()
        except (DapMuxError, OSError) as error:
            print(f"dap-mux: the console ended: {error}", file=sys.stderr)

    async def _run(self) -> None:
        from dap_mux.console.console import Console
        from dap_mux.console.screen import screen_for_stdout

        session = find(str(session_folder() / f"{os.getpid()}.json"))
        link = await open_link(session, self._config, self._stops)
        try:
            self._console = Console(link, screen_for_stdout(), prints=False)
            for path, line in self._stops.items():
                self._console.breakpoints.remember(path, line)
            await converse(self._console)
        finally:
            self._console = None
            await link.close()

    def interrupt(self) -> bool:
        """Take a Ctrl-C; False where nobody is there to take it."""
        return self._console is not None and self._console.interrupt()
