"""What every engine must carry, once through: a job of four ranks of examples/data_parallel.py.

Stop two of the ranks by a conditional breakpoint while the others wait for them in the all-reduce,
ask them something, step them over it, let all go; the job's result is that of one never debugged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from dap_mux.client import DapClient
from examples.data_parallel import Model, load_batch
from tests.launchers import launching
from tests.support.processes.commands import LIMIT, Command, Json, User, listed

PROGRAM: Final = launching.EXAMPLES / "data_parallel.py"
line = partial(launching.line, PROGRAM)
RANKS: Final = 4
STEPS: Final = 5
OPTIONS: Final = ("--steps", str(STEPS), "--seconds", "0")
HELD: Final = (1, 3)
_REDUCE: Final = "all_reduce_mean(grad)  # a good line"
_AFTER: Final = "model.step(mean_grad)"


_NO_CLOCKS: Final = """\
from dap_mux.session import session

session.CLOCK_CHECK_DELAY_S = session.TORCH_CHECK_DELAY_S = 0.0
"""


def without_clocks(user: User) -> dict[str, str]:
    """The environment of a session that never asks ranks what a pause does to their job.

    It does so some seconds after a stop, or after a rank is back: nobody can tell when. An adapter
    whose link is cut just then does not survive (docs/faults.md).
    """
    folder = user.folder.parent / "no-clocks"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_NO_CLOCKS, "utf-8")
    return {"PYTHONPATH": str(folder)}


async def attach(
    client: DapClient, program: str, when: str = "step == 3", **arguments: Any
) -> None:
    """Attach, with a breakpoint that holds two of the ranks."""
    await client.handshake(
        {"justMyCode": True, **arguments}, breakpoints={program: holding(when)}, timeout=2 * LIMIT
    )


def holding(when: str) -> list[Json]:
    """The breakpoint of `attach`."""
    condition = f"ranks({','.join(map(str, HELD))}): {when}"
    return [{"line": line(_REDUCE), "condition": condition}]


async def two_held(client: DapClient) -> None:
    """Wait until the breakpoint has stopped them."""
    await held(client, line(_REDUCE))


async def held(client: DapClient, number: int, *, within: float = 2 * LIMIT) -> None:
    """Wait until the two stand at this line, and the others run: in the all-reduce."""
    where = [number if rank in HELD else None for rank in range(RANKS)]
    await listed(client, "line", *where, within=within)
    # A rank may be known to run only a moment after it has: its answer takes its own way.
    states = ["stopped" if rank in HELD else "running" for rank in range(RANKS)]
    await listed(client, "state", *states, within=within)


async def ask_and_step(client: DapClient) -> None:
    """Cast to the two, and step them over the all-reduce, which takes all four."""
    ranks = ",".join(map(str, HELD))
    body = await client.request("cast", {"ranks": ranks, "command": "p step"}, timeout=LIMIT)
    assert [(each["ranks"], each["value"]) for each in body["results"]] == [(ranks, "3")], body
    entries = (await client.request("list", timeout=LIMIT))["ranks"]
    row = entries[HELD[0]]["threadId"]
    await look(client, row)
    await client.request("next", {"threadId": row}, timeout=LIMIT)
    await held(client, line(_AFTER))


async def look(client: DapClient, row: int) -> None:
    """Click on a rank's top frame: its class is stepped from now on, whoever stopped last."""
    stack = await client.request("stackTrace", {"threadId": row, "levels": 1}, timeout=LIMIT)
    await client.request("scopes", {"frameId": stack["stackFrames"][0]["id"]}, timeout=LIMIT)


async def taken(client: DapClient, **arguments: Any) -> None:
    """All of it, once."""
    await attach(client, str(PROGRAM), **arguments)
    await two_held(client)
    await ask_and_step(client)
    await let_go(client)


async def let_go(client: DapClient) -> None:
    """Release every rank: they run on alone."""
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)


async def over(client: DapClient, attach: Command, *, within: float = LIMIT) -> None:
    """The job's end is that of the session, and its command ends well."""
    await client.wait_event("terminated", timeout=within)
    await client.close()
    assert (await attach.ends()).code == 0


def check_result(output: str, steps: int = STEPS) -> None:
    """What the job has printed is what it prints without a debugger."""
    lines = output.splitlines()
    assert [each for each in lines if each.startswith("step ")] == list(_losses(steps)), output
    done = sorted(each for each in lines if each.endswith("is done"))
    assert done == [f"rank {rank} of {RANKS} is done" for rank in range(RANKS)], output


def _losses(steps: int) -> Sequence[str]:
    """The lines of rank 0, computed here."""
    model, lines = Model(), []
    for step in range(steps):
        each = [model.loss_and_gradient(load_batch(rank, step)) for rank in range(RANKS)]
        loss, grad = each[0]
        norm = math.hypot(*grad)
        lines.append(f"step {step:2}  loss {loss:<10.4g} grad_norm {norm:.4g}")
        columns = zip(*(grad for _, grad in each), strict=True)
        model.step([sum(column) / RANKS for column in columns])
    return lines
