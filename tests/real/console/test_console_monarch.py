"""Each example of Monarch's page, typed word for word at our console: 16 ranks, 4 hosts, 4 gpus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable

import pytest

from tests.real.driving import script
from tests.support.clients.consoles import PipedConsole, cells
from tests.support.processes.commands import User, user
from tests.support.processes.ranks import debugpy_ranks

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(240)]

CALL, AFTER, INNER = 16, 17, 20
"""Lines of `rank = inner_function(rank)`, of `return rank + 1`, and of `def inner_function`."""
# After `s` pdb shows the `def`, where debugpy stands on the first line of the body.
BODY = INNER + 1
Place = tuple[str, int]


@pytest.fixture
async def monarch(user: User) -> AsyncIterator[PipedConsole]:
    """A console on the page's mesh, all actors at their breakpoint."""
    async with debugpy_ranks(16, script("my_actors")) as ranks:
        ports = f"debugee=127.0.0.1:{ranks[0].port}+16"
        session = await user.start("attach", ports, "--mesh", "hosts=4,gpus=4")
        await session.session()
        console = PipedConsole(await user.start("console", piped=True))
        while len(cells(await console.does("list"))) < 17:
            await console.sees("stopped at")
        yield console
        console.type("c")
        assert "all ranks are released" in await console.sees("all ranks are released")
        for rank in ranks:
            assert await rank.ended(within=30) == 0


def table(text: str) -> dict[int, Place]:
    """Function and line by rank; all other cells are held to the page's."""
    head, *rows = cells(text)
    assert head[:6] == ["Actor Name", "Rank", "Coords", "Hostname", "Function", "Line No."]
    found = {}
    for name, rank, coords, host, function, line, state, _ in rows:
        number = int(rank)
        place = f"{{'hosts': {number // 4}, 'gpus': {number % 4}}}"
        assert (name, coords, host, state) == ("debugee", place, "127.0.0.1", "stopped")
        found[number] = (function, int(line))
    assert list(found) == sorted(found)
    return found


async def stand(monarch: PipedConsole, ranks: Collection[int]) -> dict[int, Place]:
    """`list`, once these ranks are in it: who takes long over a step runs at first."""
    shown = ""
    while not {row[1] for row in cells(shown)} >= {str(rank) for rank in ranks}:
        shown = await monarch.does("list")
    return table(shown)


def at(function: str, line: int, ranks: Iterable[int]) -> dict[int, Place]:
    return dict.fromkeys(ranks, (f"my_actors.{function}", line))


@pytest.mark.heavy
async def test_list_attach_detach(monarch: PipedConsole) -> None:
    assert table(await monarch.does("list")) == at("to_debug", CALL, range(16))

    said = await monarch.does("attach debugee 13")
    assert "Attached to debug session for rank 13 (127.0.0.1)\n" in said
    assert f"{script('my_actors')}({CALL})to_debug()\n" in said
    assert "-> " in said
    assert "rank = inner_function(rank)" in said
    assert f"({BODY})inner_function()\n-> x = random.randint(0, 1000)\n" in await monarch.does("s")
    assert f"({BODY + 1})inner_function()\n-> return rank + x\n" in await monarch.does("n")
    value = (await monarch.does("x")).strip()
    assert 0 <= int(value) <= 1000
    said = await monarch.does("detach")
    assert "Detaching from debug session for rank 13 (127.0.0.1)\n" in said
    assert "Detached from debug session for rank 13 (127.0.0.1)\n" in said

    others = [rank for rank in range(16) if rank != 13]
    expected = at("to_debug", CALL, others) | at("inner_function", BODY + 1, [13])
    assert table(await monarch.does("list")) == expected

    said = await monarch.does("attach debugee 13")
    assert said.endswith(f"\n{value}\n"), "its last output"
    assert "Detached from debug session for rank 13" in await monarch.does("continue")
    assert table(await monarch.does("list")) == at("to_debug", CALL, others)


@pytest.mark.heavy
async def test_three_casts_and_a_list(monarch: PipedConsole) -> None:
    for line in (
        "cast debugee ranks(0,1) n",
        "cast debugee ranks(2:7:2) s",
        "cast debugee ranks(hosts=2:, gpus=1:) c",
    ):
        assert "error" not in (await monarch.does(line)).lower()
    expected = (
        at("to_debug", AFTER, [0, 1])
        | at("inner_function", BODY, [2, 4, 6])
        | at("to_debug", CALL, [3, 5, 7, 8, 12])
    )
    assert await stand(monarch, expected) == expected
