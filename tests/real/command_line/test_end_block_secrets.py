"""The end of a job is reported without the secrets that ranks have printed or raised."""

from __future__ import annotations

import pytest

from tests.support.planted_secrets import PLANTED, planted
from tests.support.processes.commands import User
from tests.support.processes.run_command import start

pytestmark = pytest.mark.real
JOB = """\
import os
every = {every!r}
rank = int(os.environ["RANK"])
for text in every[rank::2][-7:]:
    print(rank, text)
raise ValueError("first line\\n" + "\\n".join(every[rank:60:10]))
"""


async def test_no_secret_is_in_the_block_or_its_file(user: User) -> None:
    every = [*planted(PLANTED)]
    program = user.script(JOB.format(every=[text for text, _ in every]))
    run = await start(user, "--no-wait", "--end-json", "end.json", program, n=2)
    done = await run.ends()
    assert done.code == 1
    told = (user.folder / "end.json").read_text("utf-8")
    block = done.err
    assert "first: rank" in block.replace(" (probably)", "")
    assert "[redacted: " in block
    assert told.count("[redacted: ") > 10
    assert not [secret for _, secret in every if secret in told or secret in block]
