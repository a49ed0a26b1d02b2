"""Our double of debugpy keeps the contract that real debugpy is held to."""

from __future__ import annotations

from tests.conftest import Connect
from tests.support.fake_rank.children_contract import Family, FamilyCheck, every_family_check
from tests.support.fake_rank.rank import FakeRank
from tests.support.fake_rank.rank_contract import (
    Bench,
    Check,
    begin_alone,
    every_check,
    every_check_alone,
)
from tests.support.fake_rank.server import serving
from tests.support.scripted.playbook import PATH


@every_check
async def test_the_double(check: Check, fails: bool, connect: Connect) -> None:
    rank = FakeRank(0, PATH)
    rank.program.raising = fails
    rank.patchable = True
    rank.missing.add("/no/such/file.py")
    async with serving(rank) as port:
        client = await connect(port, strict=False)
        await check(Bench(client, PATH, silence=0.05))


@every_check_alone
async def test_the_double_without_an_adapter(check: Check, fails: bool, connect: Connect) -> None:
    rank = FakeRank(0, PATH)
    rank.alone = rank.patchable = True
    rank.program.raising = fails
    rank.missing.add("/no/such/file.py")
    async with serving(rank) as port:
        client = await connect(port, strict=False)
        await begin_alone(client)
        await check(Bench(client, PATH, silence=0.05))


@every_family_check
async def test_its_children(check: FamilyCheck, connect: Connect) -> None:
    async with serving(FakeRank(0, PATH)) as port:
        await check(Family(lambda: connect(port, strict=False)))
