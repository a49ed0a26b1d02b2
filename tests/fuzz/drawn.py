"""Sessions as `strategies` has them, drawn some thirty times faster, and cut down.

Hypothesis spends nearly all of a session on drawing it. This draws the same kinds of steps from
any source of choices, a `random.Random` or the bytes of a fuzzer (`guided`), so that a million
messages take minutes; what it finds is cut down here, and kept as an example of Hypothesis's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeVar

from dap_mux.engine.events.dispatch import EVENT_TABLE
from tests.fuzz.strategies import ANSWERED, COMMANDS, NAMES, RIGHT
from tests.fuzz.world import Said, World
from tests.support.clients.argument_cases import WRONG, Ids

TEXTS: Final = ("ranks(0): x", "@all", "ranks(", "0-3,", "%list", "cast all p x", "all loss", "ü\0")
PLAIN: Final = [one for one in WRONG if not isinstance(one, list | dict)]
EVENTS: Final = [*sorted(EVENT_TABLE), "x"]
DEPTH: Final = 3
MOST_STEPS: Final = 120
_Item = TypeVar("_Item")


class Choices(Protocol):
    """Where what is drawn comes from: what is used here of `random.Random`."""

    def randrange(self, stop: int, /) -> int: ...

    def randint(self, first: int, last: int, /) -> int: ...

    def choice(self, items: Sequence[_Item], /) -> _Item: ...


def session(seed: int) -> list[Said]:
    """Return the steps of one session."""
    random = Random(seed)
    return [step(random) for _ in range(random.randint(MOST_STEPS // 2, MOST_STEPS))]


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
        World().run(steps)
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return True
    return False


def step(random: Choices) -> Said:
    """Return one step of a session."""
    kind = random.randrange(6)
    if kind < 3:
        return Said(random.randrange(255 * 256))
    return (_request, _of_rank, _error)[kind - 3](random)


def _json(random: Choices, depth: int = DEPTH) -> Any:
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


def _request(random: Choices) -> Said:
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


def _of_rank(random: Choices) -> Said:
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


def _error(random: Choices) -> Said:
    path = tuple(random.randrange(16) for _ in range(random.randint(1, 5)))
    return Said(random.randrange(8), _json(random), by_rank=True, path=path)
