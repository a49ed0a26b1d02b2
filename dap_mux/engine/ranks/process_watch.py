"""Lost ranks: whether their processes still run, as far as anybody can say.

debugpy's adapter says `terminated` at the end of the program, and also where pydevd has died in a
program that runs on. Who started the rank may see its process (`Endpoint.watched`), or this
machine's system does (`WatchProcess`). Where nobody can, a rank without a way back is taken to have
ended after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dap_mux.engine.outputs import WatchProcess
from dap_mux.engine.state.model import Rank
from dap_mux.engine.state.session import Core

DEBUGGER_ENDED: Final = "its debugger has ended"
RUNS_ON: Final = f"{DEBUGGER_ENDED}, and its process runs on without one"
UNSEEN: Final = f"{DEBUGGER_ENDED}; whether its process runs cannot be seen from here"
NO_WAY_BACK: Final = f"{DEBUGGER_ENDED}, and there has been no way back for {{:g}} s"


class ProcessWatch:
    """`ended` is called for a rank whose process is over, `found` when it is known to run or not.

    `found` takes what is to be shown as the reason.
    """

    def __init__(
        self,
        core: Core,
        ended: Callable[[Rank, str], None],
        found: Callable[[Rank, str], None],
    ) -> None:
        self._core = core
        self._ended = ended
        self._found = found
        self._looks: dict[int, Rank] = {}

    def look(self, rank: Rank) -> None:
        """The rank is lost: find out whether its process still runs."""
        if rank.main or rank.endpoint.watched:
            return
        token = self._core.number()
        rank.signs.look = token
        self._looks[token] = rank
        self._core.out.append(WatchProcess(token, rank.process))

    def seen(self, token: int, alive: bool | None) -> None:
        """The answer to a look, or that the process has ended since."""
        rank = self._looks.pop(token, None)
        if rank is None or rank.signs.look != token or not rank.lost:
            return
        if alive is False:
            self._ended(rank, "")
            return
        rank.signs.alive = alive is True
        if alive:
            self._looks[token] = rank
        if rank.signs.debugger_ended:
            self._found(rank, RUNS_ON if alive else UNSEEN)
            if not alive:
                self._give_time(rank)

    def _give_time(self, rank: Rank) -> None:
        limit = self._core.settings.redial_timeout
        self._core.cancel(rank.signs.deadline)
        rank.signs.deadline = self._core.after(limit, lambda: self._passed(rank, limit))

    def _passed(self, rank: Rank, limit: float) -> None:
        rank.signs.deadline = None
        if rank.endpoint.way_down:
            self._give_time(rank)  # nobody can know
        elif rank.lost:
            self._ended(rank, NO_WAY_BACK.format(limit))
