"""pydevd dies in a rank whose program runs on, and the session knows the one from the other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import COUNTING, StartRanks, driving
from tests.support.processes.commands import LIMIT

pytestmark = pytest.mark.real
# From now on pydevd's reader fails at whatever it reads, as it does at some bad messages; and the
# rank does not begin anew with another adapter, within a second, as it does since it keeps one.
SPOIL: Final = (
    "[setattr(reader, 'process_net_command_json', None)"
    " or vars(reader).pop('_terminate_on_socket_close', None) and None"
    " for reader in [__import__('pydevd').get_global_debugger().reader]]"
)
RUNS_ON: Final = "its debugger has ended, and its process runs on without one"


async def test_the_programs_run_on(start_ranks: StartRanks, tmp_path: Path) -> None:
    """All of them lose their debuggers: the session goes on until their processes end."""
    done = tmp_path / "done"
    ranks = await start_ranks(2, COUNTING, arguments=[str(done)])
    async with driving(ranks, live=2) as driver:
        await driver.client.request("cast", {"command": SPOIL, "ranks": "all"}, timeout=LIMIT)
        await driver.client.request("cast", {"command": "1", "ranks": "all"}, timeout=LIMIT)
        entries = await driver.until(
            lambda entries: [entry["reason"] for entry in entries] == [RUNS_ON] * 2
        )
        assert [entry["state"] for entry in entries] == ["lost", "lost"]
        assert not driver.events("terminated")
        done.touch()
        await driver.client.wait_event("terminated", timeout=LIMIT)
        assert [await rank.ended() for rank in ranks] == [0, 0]


async def test_a_program_says_that_it_is_over(start_ranks: StartRanks, tmp_path: Path) -> None:
    """Its process need not be looked for; also where threads run to the very end."""
    done, program = tmp_path / "done", tmp_path / "with_a_thread.py"
    idle = (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    program.write_text(idle + f"exec(open({COUNTING!r}).read())\n", "utf-8")
    ranks = await start_ranks(2, program, arguments=[str(done)])
    async with driving(ranks, live=2) as driver:
        done.touch()
        await driver.client.wait_event("terminated", timeout=LIMIT)
        assert all(
            rank.connection.program_over for rank in driver.session.engine.core.mains.values()
        )
