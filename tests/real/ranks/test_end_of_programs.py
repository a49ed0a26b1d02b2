"""What a rank does at its very end, after debugpy has said goodbye, is part of the job."""

from __future__ import annotations

import pytest

from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies
from tests.support.processes.run_command import start
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
WRITES_LAST = """\
import time


class Model:
    def __del__(self, sleep=time.sleep, open=open):
        sleep(4)
        with open("model", "w") as file:
            file.write("all of it")


model = Model()
"""


@pytest.mark.heavy
async def test_a_rank_that_takes_long_over_its_end_is_waited_for(user: User) -> None:
    run = await start(user, user.script(WRITES_LAST), n=1)
    client = await joined(run)
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == [{"exitCode": 0}]
    assert (user.folder / "model").read_text() == "all of it"
    await client.disconnect(timeout=LIMIT)
    done = await run.ends()
    assert done.code == 0
    assert "SIGTERM" not in done.err


PRINTS_LAST = """\
import threading
import time
from pathlib import Path

threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
print("the first line")
Path("started").touch()
while not Path("released").exists():
    time.sleep(0.01)
print("the last line")
"""


async def test_a_released_rank_that_prints_ends_beside_a_daemon_thread(user: User) -> None:
    """debugpy waits with the end until its messages are written, and nobody reads them any more."""
    run = await start(user, user.script(PRINTS_LAST), n=1)
    client = await joined(run)
    await until((user.folder / "started").exists, within=LIMIT, what="the program has started")
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    (user.folder / "released").touch()
    done = await run.ends()
    assert (done.code, done.out) == (0, "the first line\nthe last line\n"), done.err
