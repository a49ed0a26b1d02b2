"""`dap-mux attach @ranks.json` follows the file: ranks that come later, end, and start again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.driving import COUNT, COUNTING, StartRanks, joined
from tests.support.processes.commands import LIMIT, User, bodies, listed
from tests.support.processes.ranks import Rank

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(120)]


def write(file: Path, *ranks: Rank, **more: Any) -> None:
    """Write the ranks file anew, in one go."""
    entries = [
        {"host": "127.0.0.1", "port": one.port, "pid": one.pid, "rank": number}
        for number, one in enumerate(ranks)
    ]
    new = file.with_suffix(".new")
    new.write_text(json.dumps([*entries, *([more] if more else [])]), "utf-8")
    new.rename(file)


async def test_ranks_come_and_end_and_start_again(user: User, start_ranks: StartRanks) -> None:
    file, done = user.folder / "ranks.json", user.folder / "done"
    first = await start_ranks(3, COUNTING, arguments=[str(done)])
    write(file, *first[:2])
    attach = await user.start("attach", "@ranks.json")
    wanted = {COUNTING: [{"line": COUNT, "condition": "count == 5"}]}
    client = await joined(attach, wanted)
    await listed(client, "line", COUNT, COUNT)

    write(file, *first)
    await listed(client, "line", COUNT, COUNT, COUNT)

    write(file, *first[:2])
    await listed(client, "state", "stopped", "stopped", "exited")
    first[1].kill()
    await first[1].ended()
    again = await start_ranks(1, COUNTING, arguments=[str(done)])
    write(file, first[0], again[0])
    await listed(client, "pid", first[0].pid, again[0].pid, first[2].pid)
    await listed(client, "line", COUNT, COUNT, None)
    assert len(bodies(client, "initialized")) == 1

    write(file, first[0], again[0], host="127.0.0.1", port=1, rank=1)
    await attach.says("duplicate rank 1 of group job")
    await attach.says(f"127.0.0.1:{again[0].port} and 127.0.0.1:1; the second is ignored")
    file.write_text("[", "utf-8")
    await attach.says("is not JSON")
    entries = await listed(client, "line", COUNT, COUNT, None)

    done.touch()
    await client.request("continue", {"threadId": entries[0]["threadId"]}, timeout=LIMIT)
    assert [await one.ended(within=LIMIT) for one in (first[0], again[0])] == [0, 0]
    await client.wait_event("terminated", timeout=LIMIT)
    await client.close()
    assert (await attach.ends()).code == 0
