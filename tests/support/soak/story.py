"""What happened between a session and one rank, line by line: how a long absence is explained."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from dap_mux.engine import inputs, outputs
from dap_mux.engine.outputs import Output
from dap_mux.engine.state.rank import Rank
from tests.support.outputs import singly

REMEMBERED: Final = 400
BEFORE_S: Final = 2.0
MOST_LINES: Final = 240
OF_LINKS: Final = (inputs.LinkUp, inputs.LinkDown, inputs.LinkSaid)


class Story:
    """Sees every input of the engine and every output; remembers what concerns `rank`."""

    def __init__(self, rank: Rank, now: Callable[[], float]) -> None:
        self._rank = rank
        self._now = now
        self._was = (rank.phase, rank.reason)
        self._link: int | None = None
        self._lines: deque[tuple[float, str]] = deque(maxlen=REMEMBERED)

    def note(self, text: str) -> None:
        """Remember something that was done to the rank from outside."""
        self._lines.append((self._now(), text))

    def saw(self, happened: inputs.Input, out: Iterable[Output]) -> None:
        """Call after each input, with the outputs that it has led to."""
        if isinstance(happened, OF_LINKS) and happened.link == self._link:
            self.note(_input(happened))
        for output in singly(out):
            if isinstance(output, outputs.Connect) and output.rank == self._rank.rank_id:
                self._link = output.link
                self.note(f"connect to port {output.port}")
            elif isinstance(output, outputs.ToRank) and output.link == self._link:
                self.note(f"-> {_message(json.loads(output.body))}")
            elif isinstance(output, outputs.CloseLink) and output.link == self._link:
                self.note("hang up")
        now = self._rank.phase, self._rank.reason
        if now != self._was:
            self.note(f"{self._was[0].label} => {now[0].label} {now[1]}".rstrip())
            self._was = now

    def since(self, moment: float) -> list[str]:
        """What happened from shortly before `moment` on."""
        lines = [f"{at:8.2f} s  {text}" for at, text in self._lines if at > moment - BEFORE_S]
        left_out = len(lines) - MOST_LINES
        if left_out <= 0:
            return lines
        half = MOST_LINES // 2
        return [*lines[:half], f"({left_out} lines more)", *lines[-half:]]


def _input(happened: inputs.LinkUp | inputs.LinkDown | inputs.LinkSaid) -> str:
    if isinstance(happened, inputs.LinkUp):
        return "connected"
    if isinstance(happened, inputs.LinkDown):
        return f"connection down: {happened.reason}"
    said = happened.message
    return f"<- {_message({name: getattr(said, name) for name in said.__struct_fields__})}"


def _message(message: dict[str, Any]) -> str:
    if message["type"] == "event":
        return f"event {message['event']}"
    if message["type"] == "request":
        return f"{message['command']} {message['seq']}"
    problem = "" if message["success"] else f": {message.get('message')}"
    return f"answer to {message['command']} {message['request_seq']}{problem}"
