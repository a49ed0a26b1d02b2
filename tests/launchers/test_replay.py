"""`run --take` and `replay`: one rank of four, alone, bit by bit what it was."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import STARTS, launch, line, terminated, value_in
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import User, listed

pytestmark = pytest.mark.timeout(300)
SCRIPT: Final = Path(__file__).parent / "scripts" / "taken.py"
PAGE: Final = Path(__file__).parents[2] / "docs" / "replay.md"
COMMANDS: Final = re.findall(r"^dap-mux (.*?) +#", PAGE.read_text("utf-8"), re.MULTILINE)
ENVIRON: Final = {"OMP_NUM_THREADS": "1"}
TAKE, REPLAY, TAKE_PAIR, REPLAY_PAIR = (shlex.split(each) for each in COMMANDS)


async def took(user: User, *arguments: str, command: Sequence[str] = TAKE) -> str:
    """Take rank 2 of the script by the page's command; return what the job has printed."""
    user.script(SCRIPT.read_text("utf-8"))
    words = ["run", "--no-wait", *command[1:], *arguments]
    run = await launch(user, environment("torch"), words, **ENVIRON)
    done = await run.ends(within=STARTS)
    assert re.search(r"rank 2 of 4 is taken to .*r-?2\.rank: \d+ calls, \d+ bytes", done.err)
    return done.out + done.err


async def replayed(user: User, *words: str) -> str:
    """Replay without a debugger; return what was printed."""
    told = ["replay", "--no-wait", *words]
    run = await launch(user, environment("torch"), told, **ENVIRON)
    done = await run.ends(within=STARTS)
    return done.out + done.err


async def test_a_rank_is_alone_what_it_was_and_parts_where_it_is_changed(user: User) -> None:
    (learnt,) = re.findall("^rank 2 .*$", await took(user), re.MULTILINE)
    assert learnt in await replayed(user, "r2.rank")
    user.script(SCRIPT.read_text("utf-8").replace("Dropout(0.2)", "Dropout(0.3)"), "other.py")
    output = await replayed(user, "r2.rank", "--", "other.py")
    at = line(SCRIPT, "dist.all_reduce(loss")
    assert re.search(rf"all_reduce at \S*other\.py:{at} main sends other values than", output)
    assert "other.py is not the file that was run then; --go-on gives it" in output
    assert "next    dap-mux replay --console" in output
    user.script(SCRIPT.read_text("utf-8").replace("manual_seed(100", "manual_seed(101"), "seed.py")
    reasons = r"seed\.py is not the file that was run then; the random state of torch is another "
    assert re.search(
        rf"{reasons}from call \d+ on; --go", await replayed(user, "r2.rank", "--", "seed.py")
    )
    output = await replayed(user, "--go-on", "r2.rank", "--", "other.py")
    assert learnt in output, "all that it has learnt came from others"


@pytest.mark.rest
async def test_a_rank_that_failed_fails_again_under_the_debugger(user: User) -> None:
    (total,) = {*re.findall(r"ValueError: total (\S+)", await took(user, "fail"))}
    script = str(user.folder / "train.py")
    words = ["replay", "r2.rank"]
    run = await launch(user, environment("torch"), words, **ENVIRON)
    at = line(SCRIPT, "raise ValueError")
    client = await joined(run, {script: [{"line": at}]}, timeout=STARTS)
    (row,) = await listed(client, "line", at, within=STARTS)
    assert (await value_in(client, row["threadId"], "repr(total)")).strip("'") == total
    await terminated(run, client)
