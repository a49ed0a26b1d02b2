"""What may happen in a storm, and what its clients may ask: weighted tables to draw from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.scripted.interleaving_fuzz import Guest, Storm

Asking = Callable[[Storm, Guest, int], None]
MEETING: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"condition": "step == 2"},
    {"hitCondition": "%2"},
    {"logMessage": "at {step}"},
    {"condition": "step =="},
)


def _one(items: list[int], pick: int) -> int:
    recent = items[-3:]
    return recent[pick % len(recent)] if recent and pick % 7 else pick


def _control(command: str, *, alone: bool = False) -> Asking:
    def ask(storm: Storm, guest: Guest, pick: int) -> None:
        more = {"singleThread": True} if alone else {}
        storm.say(guest, command, threadId=_one(guest.threads, pick), **more)

    return ask


def _breakpoints(storm: Storm, guest: Guest, pick: int) -> None:
    for_one = {"line": 6 + pick % 3, "condition": f"ranks({pick % 4}): step == 2"}
    wanted = [for_one, {"line": 12, **MEETING[pick % len(MEETING)]}]
    source = {"path": guest.manner.path}
    storm.say(guest, "setBreakpoints", source=source, breakpoints=wanted[pick % 3 :])


def _plain(command: str, /, **arguments: object) -> Asking:
    return lambda storm, guest, pick: storm.say(guest, command, **arguments)


def _leave(storm: Storm, guest: Guest, pick: int) -> None:
    if pick % 9 == 0:
        storm.say(guest, "disconnect")


def _release(storm: Storm, guest: Guest, pick: int) -> None:
    if pick % 8 == 0:
        storm.say(guest, "release", ranks=str(pick % 3))


TYPED: Final = (
    "all loss",
    "ranks(0:2) step",
    "ranks(tp=0) loss",
    "%list",
    "%compare loss",
    "%mesh",
    "%nonsense",
    "cast all p loss",
    "cast 0-1 n",
    "attach 1",
)


def _type(storm: Storm, guest: Guest, pick: int) -> None:
    text = TYPED[pick // 7 % len(TYPED)]
    storm.say(guest, "evaluate", expression=text, context="repl")


ASKED: Final[tuple[Asking, ...]] = (
    *[_plain("configurationDone")] * 2,
    *[_plain("threads")] * 2,
    *[_breakpoints] * 2,
    *[_control("continue")] * 2,
    _control("continue", alone=True),
    *[_control("pause")] * 2,
    *[_control("next")] * 2,
    _control("next", alone=True),
    _control("stepIn"),
    _control("stepOut"),
    *[_control("stackTrace")] * 2,
    _control("exceptionInfo"),
    lambda storm, guest, pick: storm.say(guest, "scopes", frameId=_one(guest.frames, pick)),
    lambda storm, guest, pick: storm.say(
        guest, "evaluate", expression="loss", frameId=_one(guest.frames, pick)
    ),
    _plain("evaluate", expression="1 + 1"),
    _type,
    _plain("compare", expression="loss", timeout=1),
    lambda storm, guest, pick: storm.say(
        guest, "variables", variablesReference=_one(guest.frames, pick) + pick % 3
    ),
    _plain("completions", text="cast all lo", column=12),
    _plain("setExceptionBreakpoints", filters=["uncaught"]),
    _plain("modules"),
    _plain("list"),
    lambda storm, guest, pick: storm.say(guest, "focus", rank=pick % 5),
    _release,
    lambda storm, guest, pick: storm.say(
        guest, "scope", value=("auto", "rank", "class", "all")[pick % 4]
    ),
    lambda storm, guest, pick: storm.say(
        guest, "view", value=("auto", "ranks", "classes")[pick % 3]
    ),
    _plain("restartFrame", frameId=1),
    _leave,
)


def guest_speaks(storm: Storm, pick: int) -> None:
    """A client sends some request, sensible or not."""
    here = [guest for guest in storm.guests if not guest.closed]
    if here:
        ASKED[(pick // 4) % len(ASKED)](storm, here[pick % len(here)], pick)


# The wire is fast beside people: most steps deliver something.
ACTIONS: Final[tuple[Callable[[Storm, int], None], ...]] = (
    Storm.connect,
    *[Storm.ask_rank] * 6,
    *[Storm.hear_rank] * 8,
    *[Storm.run_rank] * 4,
    Storm.slow_rank,
    Storm.raise_in_rank,
    Storm.print_in_rank,
    Storm.end_rank,
    Storm.cut_link,
    Storm.start_child,
    *[Storm.deadline] * 2,
    Storm.guest_comes,
    *[guest_speaks] * 8,
    Storm.guest_leaves,
    Storm.guest_stalls,
)
