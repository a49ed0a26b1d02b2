"""A rank that calls the session is held at its exception as one that listens."""

from __future__ import annotations

import signal

import pytest

from tests.real.driving import joined
from tests.support.processes.callers import callers, told_by
from tests.support.processes.commands import LIMIT, User, listed
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]


async def test_the_session_is_killed_there_and_the_next_one_still_finds_it(user: User) -> None:
    script = user.script("def step(loss):\n    raise ValueError(loss)\n\nstep(2.5)\n")
    token = user.folder / "token"
    token.write_text("t" * 43 + "\n")
    token.chmod(0o600)
    words = ["attach", "dial:1", "--token-file", str(token)]
    # A port of this test's own: what the system draws, it may draw again for somebody else.
    first = await user.start(*words, "--dial-listen", str(free_ports(1)))
    told = await told_by(first)
    (rank,) = await callers(user, [0], script, told, world=1)
    client = await joined(first, all_answered=False)
    await listed(client, "reason", "exception")
    first.process.send_signal(signal.SIGKILL)
    await first.ends()
    await until(lambda: "it is held again" in rank.output, within=LIMIT, what="held again")

    second = await user.start(*words, "--dial-listen", told["DAP_MUX_DIAL"])
    client = await joined(second)
    await listed(client, "reason", "exception")
    asked = {"ranks": "0", "command": "p loss", "timeout": LIMIT}
    (answer,) = (await client.request("cast", asked, timeout=LIMIT))["results"]
    assert answer["value"] == "2.5"
    await client.disconnect()
    assert await rank.ended() == 1
    assert "ValueError: 2.5" in rank.output
    assert (await second.ends()).code == 0
