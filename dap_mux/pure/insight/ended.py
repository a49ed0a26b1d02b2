"""Ends of processes, as far as they are known: the input of `end_of_job`."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from dap_mux.pure.insight.why.after_death import is_consequence
from dap_mux.pure.rank_sets import RankId

IN_PEACE: Final = "in peace"
"""The kind of record of a program that has ended as it should."""
STOPPED_BY: Final = frozenset({1, 2, 15})
"""SIGHUP, SIGINT and SIGTERM: by these a launcher ends the ranks that are left."""
_FEW: Final = Meta(max_length=60)
"""More than `black_box` writes."""


class Written(Struct, frozen=True):
    """A rank's own record of its failure (`dap_mux.rank.black_box`). `time`: its clock.

    `program`: the name of one that is no rank, a launcher's most likely; `worker`: the number of
    its process whose failure was the cause of its own; `local_rank`: of the rank that it was to be.
    """

    kind: str
    time: float
    pid: int
    type: str = ""
    message: str = ""
    code: int | None = None
    file: str = ""
    line: int = 0
    function: str = ""
    called: str = ""
    source: str = ""
    stack: Annotated[list[str], _FEW] = []
    values: Annotated[dict[str, str], _FEW] = {}
    printed: str = ""
    versions: Annotated[dict[str, str], _FEW] = {}
    program: str = ""
    worker: int | None = None
    local_rank: int | None = None


class Ended(Struct, frozen=True):
    """The end of a rank's process, as far as it is known.

    `code`: -n for signal n, None where only its parent knows. `at`: seconds since the epoch.
    `reason`: a code in words. `crash`: what `faulthandler` has written; `printed`: its last output.
    """

    rank: RankId
    host: str
    pid: int
    at: float
    code: int | None = None
    reason: str = ""
    written: Written | None = None
    crash: str = ""
    printed: str = ""

    @property
    def failure(self) -> Written | None:
        """Its own record, unless it ended otherwise after that."""
        written = self.written
        if written is None or written.kind == IN_PEACE:
            return None
        if written.code is not None and self.code not in (None, written.code):
            return None  # a `sys.exit` that the program has caught
        return written

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than in peace."""
        if self.code is None and self.failure is None:
            return bool(self.crash) or self.written is None
        return self.failure is not None or self.code != 0

    @property
    def is_wordless(self) -> bool:
        """Whether nothing is known of it but that it has ended."""
        return self.code is None and self.failure is None and not self.crash

    @property
    def since(self) -> float:
        """When it failed: the exception's time, or else the process's end."""
        return self.failure.time if self.failure is not None else self.at

    @property
    def is_consequence(self) -> bool:
        """Whether by its own words another rank, or the launcher, brought it to its end."""
        failure = self.failure
        if failure is not None and failure.kind == "exception":
            return is_consequence(f"{failure.type}: {failure.message}")
        return failure is None and self.code is not None and -self.code in STOPPED_BY
