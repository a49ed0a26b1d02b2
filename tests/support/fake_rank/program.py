"""A program to debug: its text for real ranks, and what a debugger sees of it for the fake one.

One thread, two frames, an endless loop; with `FAIL=3` in its environment the third step raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

SCRIPT: Final = """\
import os
import time


def train(step):
    loss = step * 10
    time.sleep(0.01)
    return loss


for step in range(1_000_000):
    train(step)
    if os.environ.get("FAIL") == str(step):
        raise ValueError("loss is nan")
"""
# Evaluated in a rank without a frame: how far the loop has come, -1 before it has begun.
STEP: Final = "vars(__import__('sys').modules['__main__']).get('step', -1)"
FIRST: Final = 6  # line of `train`
CALL: Final = 12  # line where it is called
RAISE: Final = 14
_TRAIN: Final = (6, 7, 8)
_OVER: Final = {6: 7, 7: 8, 8: CALL, CALL: 13, 13: 11, 11: CALL}
_EXECUTED: Final = (11, CALL, *_TRAIN, 13)
_LAST: Final = 14


class Call(NamedTuple):
    """One frame: `number` tells two calls of the same function apart."""

    function: str
    line: int
    number: int


@dataclass
class Program:
    """Where the loop stands."""

    path: str = "/job/train.py"
    line: int = CALL
    calls: int = 0
    raising: bool = False

    @property
    def stack(self) -> list[Call]:
        """The frames, innermost first."""
        module = Call("<module>", CALL if self._in_train else self.line, 0)
        return [Call("train", self.line, self.calls), module] if self._in_train else [module]

    @property
    def _in_train(self) -> bool:
        return self.line in _TRAIN

    def go(self, line: int) -> None:
        """Stand on this line; a new call of `train` where it was not in one."""
        if line in _TRAIN and not (self._in_train and line > self.line):
            self.calls += 1
        self.line = line

    def step(self, command: str) -> None:
        """Do what one `next`, `stepIn` or `stepOut` does."""
        if command == "stepOut" and self._in_train:
            self.go(CALL)
        elif command == "stepIn" and self.line == CALL:
            self.go(FIRST)
        elif self.line != RAISE:  # there it ends
            self.go(_OVER[self.line])

    def run_to(self, lines: set[int]) -> bool:
        """Run on to the next of these lines; False when the loop never comes there."""
        start = _EXECUTED.index(self.line)
        for line in _EXECUTED[start + 1 :] + _EXECUTED[: start + 1]:
            if line in lines:
                self.go(line)
                return True
        return False

    @staticmethod
    def moved(line: int) -> int:
        """Where a breakpoint on this line ends up: past the end means the last line."""
        return min(line, _LAST)
