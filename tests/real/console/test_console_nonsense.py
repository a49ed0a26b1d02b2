"""Nonsense at every prompt: a message, never a traceback, never a dead session."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from dap_mux.frontends.console.commands import COMMANDS
from tests.conftest import rounds
from tests.real.driving import script
from tests.support.clients.consoles import console_of
from tests.support.processes.commands import line_of
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

LINES = rounds(400)
WORDS = (
    "list attach detach cast compare break clear tb disable condition ignore "
    "pause focus scope view groups help l a b cl h ? "
    "all stopped running 0 1 7 99999999999 -1 0-3 3-0 ranks( ranks(0) ranks(0:9:0) ranks(tp=1) ) "
    "( @x job job:0 NAME p pp n! 1/0 x= == = delete classes full auto within 5% : , ; | & ~ % "
    "%list train.py:3 :3 /:1 \x1b[2J \x00 é \u202e 🦀 ' \" \\ $rank $ {} [ ] None # u d w whatis "
    "source interact"
).split(" ")
KEPT = ("quit", "q", "exit", "c", "cont", "continue", "release", "drop")
"""Not drawn: these are for leaving, and mean it."""


def nonsense(chance: random.Random) -> str:
    """A line of words that nearly make sense, or of none at all."""
    if chance.random() < 0.2:
        return "".join(chr(chance.randrange(1, 0x250)) for _ in range(chance.randrange(40)))
    words = [chance.choice(WORDS) for _ in range(chance.randrange(1, 6))]
    if chance.random() < 0.7:
        words.insert(0, chance.choice(["", "%"]) + chance.choice(COMMANDS).name)
    return " ".join(words)


def means_it(line: str) -> bool:
    """Whether a drawn line would leave, or let ranks go."""
    words = line.lstrip("%").split()
    return any(word in KEPT for word in (*words[:1], *words[-1:]))


@pytest.mark.parametrize("attached", [False, True])
async def test_whatever_is_typed(start_ranks: Callable[..., Any], attached: bool) -> None:
    path = script("tour")
    ranks = await start_ranks(2, path)
    chance = random.Random(7 + attached)
    async with (
        session([rank.port for rank in ranks]) as served,
        console_of(served, {path: [{"line": line_of(path, "call")}]}) as (console, shown),
    ):
        while console.client.ranks.counts() != "2 stopped":
            await console.client.wait_for_change()
        for _ in range(LINES):
            line = nonsense(chance)
            if means_it(line):
                continue
            if attached and console.attached is None:
                await console.handle("attach stopped")
            before = len(shown)
            await console.handle(line)
            said = "".join(shown[before:])
            assert "internal error" not in said, (line, said)
            assert "Traceback" not in said, (line, said)
            assert "\x1b" not in said, (line, said)
        assert not console.ended.is_set()
        before = len(shown)
        await console.handle("%list all")
        said = "".join(shown[before:])
        assert sum(line.startswith("| job ") for line in said.splitlines()) == 2, said


async def test_pdb_words_in_the_console(start_ranks: Callable[..., Any]) -> None:
    """What `clear all` leaves, where a line without code is moved to, and the exception."""
    path = script("tour")
    ranks = await start_ranks(2, path)
    async with (
        session([rank.port for rank in ranks]) as served,
        console_of(served, {path: [{"line": line_of(path, "call")}]}) as (console, shown),
    ):

        async def says(line: str) -> str:
            before = len(shown)
            await console.handle(line)
            return "".join(shown[before:])

        async def stopped(line: int) -> None:
            while {row["line"] for row in console.client.ranks.rows.values()} != {line} or (
                console.client.ranks.counts() != "2 stopped"
            ):
                await console.client.wait_for_change()

        await stopped(line_of(path, "call"))
        await console.client.request("setExceptionBreakpoints", {"filters": ["raised"]})
        assert "line 6000 has no code" in await says(f"break {path}:6000")
        await says("attach 1")
        assert "line 6000 has no code" in await says("b tour.py:6000")
        await says(f"b {line_of(path, 'after')}")
        await says(f"b {line_of(path, 'nested')}")
        await says("detach")
        cleared = await says("clear all")
        assert f"tour.py:{line_of(path, 'nested')}" in cleared
        assert "has no breakpoints" in await says("clear all")
        await says("cast all c")
        await stopped(line_of(path, "risky"))
        told = await says("cast 0 exceptions")
        (advice,) = re.findall(r"`p (.*?)`", told)
        assert "ZeroDivisionError" in await says(f"cast 0 p {advice}")
