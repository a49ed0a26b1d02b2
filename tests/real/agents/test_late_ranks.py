"""A job whose ranks come one after the other, long after it has been started."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from dap_mux.frontends.console import breakpoints
from tests.real.agents.agent import TRAIN, in_memory
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
LAUNCHER: Final = """\
for rank in 0 1; do
    while [ ! -e "rank $rank may come" ]; do sleep 0.05; done
    RANK=$rank WORLD_SIZE=2 "$@" &
done
wait
"""


async def test_each_stops_at_its_first_line(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that had not come within 10 s ran to their end, as torchrun's on a busy machine did."""
    monkeypatch.setattr(breakpoints, "BEGIN_S", 0.0)
    monkeypatch.setenv("DAP_MUX_BASE_PORT", str(free_ports(2)))
    command = ["sh", user.script(LAUNCHER, "launcher"), sys.executable, user.script(TRAIN)]
    (user.folder / "rank 0 may come").touch()
    async with in_memory(user, monkeypatch) as agent:
        answer = await agent.does("start", command=command, folder=str(user.folder), request_id="1")
        assert [one["ranks"] for one in answer["stopped"]] == ["0"], answer
        (user.folder / "rank 1 may come").touch()
        stop = await agent.until("wait_for_stop", "others", [])
        assert [(one["ranks"], one["place"]) for one in stop["stopped"]] == [("0-1", "train.py:1")]
        await agent.does("go", action="next", request_id="2", wait=25)
        stop = await agent.until("wait_for_stop", "others", [])
        assert [(one["ranks"], one["place"]) for one in stop["stopped"]] == [("0-1", "train.py:2")]
        await agent.does("go", action="continue", request_id="3", wait=0)
