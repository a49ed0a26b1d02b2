"""A rank's death, told once: how it ended, and the newest place that is known of it.

An end in peace (exit code 0, or a program that is over and whose code is unknown) is no death,
nor is an end that the session itself has brought about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dap_mux.engine.outputs import Tell
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.rank_sets import RankId, name_ranks

COALESCE_WINDOW_S: Final = 0.2  # ranks that die alike within it share a line
UNSEEN_END: Final = "ended for an unknown reason"


class Deaths(Struct, eq=False):
    """The engine's part that tells of ranks that have died."""

    _core: SessionState
    _notice: Callable[[str], None]
    _untold: dict[str, list[RankId]] = {}
    _timer: int | None = None

    def consider(self, rank: Rank) -> None:
        """The rank has ended, or more is known of how."""
        flow, fate = self._core.flow, rank.fate
        if rank.phase is not Phase.GONE or rank.main or fate.told or fate.wanted:
            return
        text = "" if flow.ended or flow.restarting else _text_of(rank)
        # A session over one rank is as plain as debugpy: the traceback has said this.
        if text and not (self._core.single and fate.failure):
            fate.told = True
            self._untold.setdefault(text, []).append(rank.rank_id)
            if self._timer is None:
                self._timer = self._core.after(COALESCE_WINDOW_S, self._passed)

    def _passed(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Tell at once what is still to be told."""
        self._core.cancel(self._timer)
        self._timer = None
        untold, self._untold = self._untold, {}
        for text, ranks in untold.items():
            if self._core.flow.job_code == 0 and text.startswith(UNSEEN_END):
                continue  # the job has ended well: that is the reason
            who = name_ranks(ranks, self._core.default_group())
            self._core.out.append(Tell(f"{who} {text}"))
            self._notice(f"{who} {text}")


def _text_of(rank: Rank) -> str:
    """Return what has become of a rank, without its number; "" for an end in peace."""
    fate, code = rank.fate, rank.exit_code
    if code == 0 or (code is None and rank.endpoint.watched and not fate.exited):
        return ""  # or its launcher is about to say how
    if fate.failure:
        return f"failed: {fate.failure}{f', {fate.end}' if fate.end else ''}"
    if not fate.end and not fate.vanished:
        return ""
    place = f"; last stopped at {fate.place}" if fate.place else ""
    return f"died: {fate.end}{place}" if fate.end else f"{UNSEEN_END}{place}"


def reason_of(rank: Rank) -> str:
    """Return what `list` says of a rank that has ended; "" where that is unknown."""
    fate = rank.fate
    if fate.failure and rank.exit_code != 0:
        return f"failed: {fate.failure}{f', {fate.end}' if fate.end else ''}"
    return fate.end


def end_of(code: int) -> str:
    """Return how a process has ended, in words."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def held(rank: Rank) -> str:
    """Return what `list` says of a rank that is held at its failure with no client attached."""
    fate = rank.fate
    if fate.held is None or rank.phase.linked:
        return ""
    return f"failed: {fate.failure}, held, {fate.held:.0f} s left"


def note_stop(rank: Rank, stop: Stop | None) -> None:
    """Remember where a rank stands, and of what it is about to fail."""
    if stop is None or not stop.frames:
        return
    frame = stop.frames[stop.own]
    name = frame.path.replace("\\", "/").rsplit("/", 1)[-1]
    place = f"{name}:{frame.line}"
    rank.fate.place = f"{place} in {frame.name}"
    if stop.reason == "exception" and stop.unhandled:
        error = str(stop.details.get("text") or "an exception").rsplit(".", 1)[-1]
        rank.fate.failure = f"{error} at {place}"
    else:
        rank.fate.failure = ""
