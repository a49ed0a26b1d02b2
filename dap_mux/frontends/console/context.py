"""The interface of `Console` that its commands use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dap_mux.frontends.console.breakpoints import Breakpoints
from dap_mux.frontends.console.screen import Screen
from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Row

REQUEST_TIMEOUT_S = 5.0
"""How long ranks may take to answer; the engine's own default."""

RANKS_TIMEOUT_S = REQUEST_TIMEOUT_S + 10.0
"""The same, with the time that the session may take in addition to its ranks."""

SLOW_TIMEOUT_S = 60.0
"""For `why --slow`, whose look takes up to twenty seconds."""


class Context(Protocol):
    """The console as its commands see it."""

    client: SessionClient
    screen: Screen
    breakpoints: Breakpoints
    named_sets: list[tuple[str, str]]
    """The session's named rank sets, as last received."""
    last_output: dict[RankId, str]
    """The last output of each rank at a rank prompt."""

    @property
    def set(self) -> object | None:
        """The current set; None with Monarch's words."""

    @property
    def target(self) -> tuple[str, list[Row]]:
        """The ranks that plain lines go to, and their rows."""

    @property
    def attached(self) -> object | None:
        """The rank prompt that is open, if any."""

    @property
    def said_twice(self) -> bool:
        """Whether the line is the one before it again, or nobody is there to repeat it."""

    async def attach(self, rows: list[Row]) -> None:
        """Open the prompt on these ranks."""

    def detach(self, reason: str = "") -> None:
        """Close it; the ranks stay where they are."""

    def blocked(self, who: str) -> None:
        """Say how the prompt comes back while these ranks run."""

    def note_failures(self, body: Mapping[str, Any]) -> None:
        """Note that ranks have failed, or not answered, as the answer to a line says."""

    async def source(self, path: str) -> None:
        """Run the lines of a file. Raises UsageError."""

    async def dispatch(self, line: str) -> None:
        """Run a line. Raises what its command does."""

    async def leave(self) -> None:
        """Disconnect from the session."""
