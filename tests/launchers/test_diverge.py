"""`dap-mux diverge` of real ranks: where replicas part, where two runs do, and where none does."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.launchers.launching import launch, line
from tests.launchers.tools import environment
from tests.support.processes.commands import Done, User
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
PROGRAM: Final = Path(__file__).parent / "scripts" / "diverge_parts.py"
TORCHRUN: Final = ("torchrun", "--standalone", "--nproc-per-node", "2", str(PROGRAM))
ENDS_S: Final = 240.0


async def does(user: User, *words: str) -> Done:
    """Run a command with torch's programs in its path."""
    command = await launch(user, environment("torch"), [*words], OMP_NUM_THREADS="1")
    return await command.ends(within=ENDS_S)


def answer(done: Done) -> dict[str, Any]:
    """The JSON that a command has printed."""
    body: dict[str, Any] = json.loads(done.out[done.out.index("{") :])
    return body


async def test_a_gradient_left_out_is_named_by_line_step_and_rank(user: User) -> None:
    done = await does(user, "diverge", "--locate", "--json", "--", *TORCHRUN, "--leave-out")
    assert done.code == 10, done
    body = answer(done)
    assert (body["kind"], body["step"], body["ranks"]) == ("not-exchanged", 2, [1])
    assert body["tensor"] == "2.weight"
    at = line(PROGRAM, "dist.all_reduce(parameter.grad)")
    assert body["place"] == f"{PROGRAM}:{at} average"
    assert body["also"] == f"{PROGRAM}:{line(PROGRAM, 'model(torch.randn')} train"


async def test_two_runs_part_where_one_leaves_a_call_out(user: User) -> None:
    record = ("run", "--no-wait", "--listen", "0", "--comm", "hash", "--comm-file", "before")
    assert (await does(user, *record, "--", *TORCHRUN)).code == 0
    done = await does(user, "diverge", "before")
    assert (done.code, done.out) == (
        0,
        "no difference; parameters compared: 4, steps: 4\n",
    )
    done = await does(user, "diverge", "before", "--json", "--", *TORCHRUN, "--leave-out")
    assert done.code == 10, done
    body = answer(done)
    assert body["step"] == 2
    assert body["ranks"] == [0, 1]
    assert "only the first run: all_reduce" in body["between"][0]
    assert body["place"].endswith(f":{line(PROGRAM, 'dist.all_reduce(parameter.grad)')} average")
    assert "--locate" in body["next"]
    refused = await does(user, *record, "--", *TORCHRUN)
    assert refused.code == 2
    assert "--comm-file before: exists already; a trace is a new folder" in refused.err


async def test_an_expression_that_has_no_value_is_named(user: User) -> None:
    done = await does(user, "diverge", "--equal", "step", "--equal", "stpe", "--", *TORCHRUN)
    assert done.code == 1
    assert "--equal stpe: NameError: name 'stpe' is not defined (rank 0, at " in done.err


async def test_what_the_user_says_is_equal_is_compared_at_the_line_that_ends_a_step(
    user: User,
) -> None:
    at = line(PROGRAM, 'print(f"step')
    words = ["--step", f"scripts/diverge_parts.py:{at}", "--equal", "step"]
    words += ["--equal", "torch.initial_seed() if step > 1 else 0", "--json", "--", *TORCHRUN]
    done = await does(user, "diverge", *words, "--leave-out")
    assert done.code == 10, done
    body = answer(done)
    assert (body["kind"], body["step"], body["tensor"]) == ("not-exchanged", 2, "2.weight")
    body = answer(await does(user, "diverge", *words))
    assert (body["kind"], body["step"], body["ranks"]) == ("equal", 2, [1])
    assert body["place"] == f"{PROGRAM}:{at} train"


async def test_ctrl_c_ends_the_job_and_asks_what_it_has_recorded(user: User) -> None:
    words = ["diverge", "--json", "--", *TORCHRUN, "--leave-out", "--endless"]
    command = await launch(user, environment("torch"), words, OMP_NUM_THREADS="1")
    await until(lambda: "step 4" in command.out, within=ENDS_S, what="steps")
    user.signal(command.process.pid, signal.SIGINT)
    done = await command.ends(within=ENDS_S)
    assert done.code == 10, done
    body = answer(done)
    assert (body["kind"], body["step"], body["tensor"]) == ("not-exchanged", 2, "2.weight")
