"""Two ranks of four, replayed as two processes that talk to each other."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.launchers.launching import STARTS, launch, line, terminated, value_in
from tests.launchers.test_replay import (
    ENVIRON,
    REPLAY_PAIR,
    SCRIPT,
    TAKE_PAIR,
    replayed,
    took,
)
from tests.launchers.test_replay_at import ADDS, STEPS
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, listed

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]
FILES: Final = REPLAY_PAIR[2:]
GATHERS: Final = line(SCRIPT, "dist.all_gather_object")
LEARNT: Final = re.compile(r"(?:^|\] )(rank [23] \S+ \S+)$", re.MULTILINE)


async def test_two_ranks_are_what_they_were_and_hear_of_each_others_mend(user: User) -> None:
    then = {*LEARNT.findall(await took(user, command=TAKE_PAIR))}
    assert len(then) == 2
    assert {*LEARNT.findall(await replayed(user, *FILES))} == then
    at = "dist.all_reduce(loss, group=pairs[rank // 2])"
    script = SCRIPT.read_text("utf-8")
    assert at in script
    user.script(script.replace(at, f"rank == 3 and loss.add_(1)\n        {at}"), "other.py")
    mended = LEARNT.findall(await replayed(user, "--go-on", *FILES, "--", "other.py"))
    totals = {each.split()[1]: float(each.split()[2]) for each in mended}
    before = {each.split()[1]: float(each.split()[2]) for each in then}
    assert {*totals} == {"2", "3"}
    assert totals["2"] > before["2"] + 7, "eight sums had one more, and rank 3 sends its total too"


@pytest.mark.rest
async def test_they_stop_together_and_each_goes_back_for_itself(user: User) -> None:
    """Back in rank 3: rank 2 runs along, and waits for it where they meet next."""
    await took(user, command=TAKE_PAIR)
    words = ["replay", "--at", "3", *FILES]
    run = await launch(user, environment("torch"), words, **ENVIRON)
    script = str(user.folder / "train.py")
    client = await joined(run, {script: [{"line": ADDS}]}, timeout=STARTS)
    rows = await listed(client, "line", STEPS, STEPS, within=STARTS)
    assert [row["rank"] for row in rows] == [2, 3]
    await client.request("continue", {"threadId": rows[0]["threadId"]}, timeout=LIMIT)
    rows = await listed(client, "line", ADDS, ADDS, within=STARTS)
    await client.request("stepBack", {"threadId": rows[1]["threadId"]}, timeout=LIMIT)
    (row,) = await listed(client, "line", GATHERS, within=STARTS, rank=3)
    await client.request("continue", {"threadId": row["threadId"]}, timeout=LIMIT)
    (row,) = await listed(client, "line", ADDS, within=STARTS, rank=3)
    assert await value_in(client, row["threadId"], "number") == "5"
    await terminated(run, client)
