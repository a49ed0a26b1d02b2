"""The steps of fuzzed sessions, drawn from bytes, and cut down to the few that fail.

Half of them are actions of ranks and clients that are sound; the others are requests with something
wrong, responses and events of any shape, and what a rank would have said with one place of it
wrong. They are drawn from bytes, a frame of them for each step, so that a change to some of the
bytes leaves all other steps as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar

from dap_mux.engine.routes import ROUTES
from dap_mux.engine.session.rank_events import EVENT_TABLE
from tests.fuzz.world import Said, attempt
from tests.support.clients.argument_cases import WRONG, Ids, right

TEXTS: Final = ("ranks(0): x", "@all", "ranks(", "0-3,", "%list", "cast all p x", "all loss", "ü\0")
PLAIN: Final = [one for one in WRONG if not isinstance(one, list | dict)]
EVENTS: Final = [*sorted(EVENT_TABLE), "x"]
DEPTH: Final = 3
MOST_STEPS: Final = 120
FRAME: Final = 32  # bytes; few steps need more choices than that
NAMES: Final = sorted(
    {
        *"""breakpoints id verified threads threadId stackFrames source path line column reason name
        output category variablesReference capabilities sockets internal body module subProcessId
        configuration breakpoint result targets variables scopes frameId expression ranks command
        define hitBreakpointIds exceptionId breakMode allThreadsContinued condition""".split()
    }
)
RIGHT: Final = right("/job/train.py")
COMMANDS: Final = sorted(ROUTES)
ANSWERED: Final = [
    *("initialize attach evaluate setBreakpoints configurationDone threads stackTrace").split(),
    *("continue next pause scopes variables exceptionInfo disconnect source").split(),
]
_Item = TypeVar("_Item")


class Frame:
    """Choices, as `random.Random` has them, read from bytes; behind their end, the first of all."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def randrange(self, stop: int, /) -> int:
        """Choose from 0 to `stop`, which is left out."""
        high = next(self._data, 0) if stop > 256 else 0
        return (high * 256 + next(self._data, 0)) % stop

    def randint(self, first: int, last: int, /) -> int:
        """Choose from both ends and between."""
        return first + self.randrange(last - first + 1)

    def choice(self, items: Sequence[_Item], /) -> _Item:
        """Choose one."""
        return items[self.randrange(len(items))]


def session(seed: int) -> list[Said]:
    """Return the steps of one session."""
    random = Random(seed)
    count = random.randint(MOST_STEPS // 2, MOST_STEPS)
    return [step(random.randbytes(FRAME)) for _ in range(count)]


def cut_down(steps: list[Said], fails: Callable[[list[Said]], bool]) -> list[Said]:
    """Return as few of the steps as still fail, found by leaving out halves, quarters and so on."""
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps), size):
            fewer = steps[:start] + steps[start + size :]
            if fails(fewer):
                return cut_down(fewer, fails)
        size //= 2
    return steps


def fails(steps: list[Said]) -> bool:
    """Whether the engine cannot take these steps."""
    try:
        attempt(steps)
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return True
    return False


def step(data: bytes) -> Said:
    """Return the step that a frame means."""
    random = Frame(data)
    kind = random.randrange(6)
    if kind < 3:
        return Said(random.randrange(255 * 256))
    return (_request, _of_rank, _error)[kind - 3](random)


def _json(random: Frame, depth: int = DEPTH) -> Any:
    kind = random.randrange(8 if depth else 4)
    if kind == 0:
        return random.randint(-2, 12)
    if kind == 1:
        return random.choice(TEXTS)
    if kind in (2, 3):
        return random.choice(PLAIN)
    if kind == 4:
        return [_json(random, depth - 1) for _ in range(random.randrange(5))]
    return {random.choice(NAMES): _json(random, depth - 1) for _ in range(random.randrange(6))}


def _request(random: Frame) -> Said:
    command = random.choice(COMMANDS)
    ids = Ids(*(random.randint(0, 40) for _ in range(5)))
    arguments: Any = dict(RIGHT[command](ids)) if command in RIGHT else {"threadId": ids.thread}
    if not random.randrange(10):
        arguments = _json(random)
    else:
        for _ in range(random.randrange(3)):
            arguments[random.choice([*sorted(arguments), "x"])] = _json(random)
    message = {"type": "request", "command": command, "arguments": arguments}
    return Said(random.randrange(8), message)


def _of_rank(random: Frame) -> Said:
    kind = random.choice(["event", "event", "response", "response", "request"])
    message: dict[str, Any] = {"seq": random.randrange(100), "type": kind, "body": _json(random)}
    if kind == "event":
        message |= {"event": random.choice(EVENTS)}
    elif kind == "request":
        command = random.choice(["startDebugging", "runInTerminal", "x"])
        message |= {"command": command, "arguments": _json(random)}
    else:
        seq = random.randint(1, 30) if random.randrange(2) else 0
        message |= {"request_seq": seq, "success": not random.randrange(2)}
        message |= {"command": random.choice(ANSWERED), "message": random.choice(["", "no"])}
    return Said(random.randrange(8), message, by_rank=True)


def _error(random: Frame) -> Said:
    path = tuple(random.randrange(16) for _ in range(random.randint(1, 5)))
    return Said(random.randrange(8), _json(random), by_rank=True, path=path)
