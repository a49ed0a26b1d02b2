"""Kill -9 of the proxy while all are stopped: every rank runs on, and can be attached again."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import pytest

from tests.support.processes.commands import LIMIT, User, line_of, listed, quiet, user
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.alone]
RANKS = 4
RUNS_ON = 3.0  # s; docs/internals/guarantees.md
BEATS = """\
import sys
import time
from pathlib import Path

go = Path(sys.argv[1])
number = 0
while not go.exists():
    number += 1  # beat
    print("beat", number, flush=True)
    time.sleep(0.01)
print("end")
"""


def has_run_on(rank: Rank) -> bool:
    """Whether it is past the place where it was stopped."""
    return rank.output.count("beat") > 5


async def test_every_rank_runs_on_within_3_s_and_can_be_attached_again(
    user: User, start_ranks: Callable[..., Awaitable[list[Rank]]]
) -> None:
    script, go = user.script(BEATS), user.folder / "go"
    ranks = await start_ranks(RANKS, script, arguments=[str(go)])
    words = ["attach", f"127.0.0.1:{ranks[0].port}+{RANKS}"]
    here = {str(script): [{"line": line_of(script, "beat"), "condition": "number == 3"}]}
    attach = await user.start(*words)
    client = await attach.client("first", all_answered=False)
    await client.handshake({"justMyCode": True}, breakpoints=here, timeout=LIMIT)
    await listed(client, "state", *["stopped"] * RANKS)
    await quiet(client, here)

    attach.process.send_signal(signal.SIGKILL)
    await until(lambda: all(map(has_run_on, ranks)), within=RUNS_ON, what="every rank runs on")

    again = await user.start(*words)
    client = await again.client("second")
    here[str(script)][0]["condition"] = "number > 10"
    await client.handshake({"justMyCode": True}, breakpoints=here, timeout=LIMIT)
    await listed(client, "state", *["stopped"] * RANKS)
    await client.disconnect()
    go.touch()
    for rank in ranks:
        assert await rank.ended(within=LIMIT) == 0
