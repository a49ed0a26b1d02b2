"""Where ranks stand, as pdb says it: `> train.py(7)train()`, and the line's text behind `->`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from dap_mux.engine.commands.pdb.command import PdbExpressions
from dap_mux.engine.evaluate.fan_out import FanOutEvaluator
from dap_mux.engine.evaluate.replies import Answer, Answers, ReplyCollector
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.stop import Frame, Stop
from dap_mux.rank_sets import RankId

LINE_TIMEOUT: Final = 1.0  # s; a place without its line's text is worth telling too


class Places:
    """Tells places; a line's text that no stop has told is asked of one rank, for all there."""

    def __init__(self, fan_out: FanOutEvaluator, expressions: PdbExpressions) -> None:
        self._fan_out = fan_out
        self.expressions = expressions

    def tell(
        self,
        collector: ReplyCollector,
        ranks: Sequence[Rank],
        more: Mapping[RankId, str] | None = None,
    ) -> None:
        """Answer for each rank with the place of its selected frame; `more` goes below it."""
        groups: dict[Frame, list[Rank]] = {}
        for rank in ranks:
            frame = selected(rank)
            if frame is None:
                collector.fail(rank.rank_id, "it has run on meanwhile")
            else:
                groups.setdefault(frame, []).append(rank)
        for frame, members in groups.items():
            told = partial(_told, collector, frame, members, more or {})
            known = _line_text(members[0])
            if known is not None:
                told(known)
                continue
            text = self.expressions.line_text(frame.line)
            self._fan_out.evaluate(members[:1], text, partial(_heard, told), LINE_TIMEOUT, raw=True)


def _line_text(rank: Rank) -> str | None:
    """Return the text of the selected frame's line, where the stop has told it."""
    return rank.stop.line_text if rank.stop and rank.stop.selected == 0 else None


def _heard(told: Callable[[str], None], answers: Answers) -> None:
    told(next((answer.value for answer in answers.values.values()), ""))


def _told(
    collector: ReplyCollector,
    frame: Frame,
    members: Sequence[Rank],
    more: Mapping[RankId, str],
    found: str,
) -> None:
    text = f"> {place(frame)}" + (f"\n-> {found}" if found else "")
    for rank in members:
        below = more.get(rank.rank_id)
        collector.answer(rank.rank_id, Answer(f"{text}\n{below}" if below else text))


def selected(rank: Rank) -> Frame | None:
    """Return the frame that `u` and `d` went to, the innermost at first; None while it runs."""
    frames = rank.stop.frames if rank.stop else None
    return frames[rank.stop.selected] if rank.stop and frames else None


def place(frame: Frame) -> str:
    """Return `/job/train.py(7)train()`, as pdb writes it."""
    return f"{frame.path}({frame.line}){frame.name}()"


def stack(stop: Stop) -> str:
    """Return the whole stack, the newest frame last and the selected one marked, as pdb's `w`."""
    frames = list(enumerate(stop.frames or ()))
    return "\n".join(
        ("> " if index == stop.selected else "  ") + place(frame)
        for index, frame in reversed(frames)
    )
