"""docs/walkthrough.md is true: what is printed, which rank differs, and that the fix is one."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.rank.injected.attach.conditions import Logpoint
from tests.support.processes.commands import LIMIT, User, bodies, listed, threads
from tests.support.processes.run_command import log, resume, start
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = (ROOT / "docs/walkthrough.md").read_text("utf-8")
BLOCKS: Final = [
    (
        language,
        "\n".join(line.removeprefix("   ") if indent else line for line in text.splitlines()),
    )
    for indent, language, text in re.findall(
        r"^( {3})?```(\w*)\n(.*?)^(?: {3})?```$", PAGE, re.MULTILINE | re.DOTALL
    )
]
TEXTS: Final = [text for language, text in BLOCKS if not language]
REPORTED, CONDITION, MESSAGE, CONSOLE, FOLDED, NEXT_TIME = TEXTS
FIX: Final = [text for language, text in BLOCKS if language == "python"][-1]
VALUES: Final = {
    name: [cell.strip().strip("*`") for cell in cells.split("|")]
    for name, cells in re.findall(r"^\| `([\w.]+)` \| (.*) \|$", PAGE, re.MULTILINE)
}
PROGRAM: Final = "examples/data_parallel.py"
LINE: Final = next(
    number
    for number, line in enumerate((ROOT / PROGRAM).read_text("utf-8").splitlines(), 1)
    if "mean_grad = world.all_reduce_mean(grad)" in line
)
ATTACH: Final[dict[str, Any]] = {"justMyCode": True}
RUN: Final = (PROGRAM, "--seconds", "0")


@pytest.fixture
def program(user: User) -> Path:
    """The example, where the user works."""
    (user.folder / "examples").mkdir()
    return Path(shutil.copy(ROOT / PROGRAM, user.folder / "examples"))


def test_what_is_said_of_a_logpoint_in_a_hot_loop() -> None:
    """Ten lines are told at once, and the newest of the other 1,500 a second later."""
    who, line = re.fullmatch(r"(\[2\]) (step \d+: .*?)  \(.*\)\n?", FOLDED).groups()  # type: ignore[union-attr]
    logpoint = Logpoint("line")
    told = [logpoint.is_told(f"{line}\n", 100.0) for _ in range(10 + 1500)]
    assert sum(told) == 10
    assert f"{who} {logpoint.take(101.0)}".strip() == FOLDED.strip()


async def test_what_rank_0_reports(user: User, program: Path) -> None:
    run = await start(user, "--no-wait", *RUN, n=4)
    assert (await run.ends()).code == 0
    assert REPORTED in log(user, 0)


async def attached(user: User, breakpoint: dict[str, Any]) -> DapClient:
    """Four ranks with one breakpoint, on their way."""
    run = await start(user, *RUN, n=4)
    client = await run.client()
    where = str(user.folder / PROGRAM)
    await client.handshake(
        ATTACH, breakpoints={where: [{"line": LINE, **breakpoint}]}, timeout=LIMIT
    )
    return client


async def test_the_tables_and_the_step(user: User, program: Path) -> None:
    client = await attached(user, {"condition": CONDITION})
    await listed(client, "state", *["stopped"] * 4)
    for name, shown in VALUES.items():
        for rank, text in enumerate(shown):
            assert rounds_to(await value(client, rank, name), text), (name, rank)
    focus = (await threads(client, 4))["rank 0"]
    await client.request("next", {"threadId": focus}, timeout=LIMIT)
    await listed(client, "line", *[LINE + 1] * 4)
    means = {await value(client, rank, "max(map(abs, mean_grad))") for rank in range(4)}
    [mean] = means
    assert f"made it {float(mean):.0f}" in PAGE
    await resume(client, focus)
    await client.wait_event("terminated", timeout=LIMIT)


async def value(client: DapClient, rank: int, expression: str) -> str:
    """Evaluate an expression where a rank is stopped."""
    thread = (await threads(client, 4))[f"rank {rank}"]
    [frame, *_] = (await client.request("stackTrace", {"threadId": thread}, timeout=LIMIT))[
        "stackFrames"
    ]
    wanted = {"expression": expression, "frameId": frame["id"], "context": "watch"}
    result: str = (await client.request("evaluate", wanted, timeout=LIMIT))["result"]
    return result


def rounds_to(exact: str, shown: str) -> bool:
    """Whether a value reads so on the page, with as many digits as stand there."""
    found = ast.literal_eval(exact)
    if isinstance(found, str):
        return exact == shown
    digits = len(shown.partition(".")[2])
    return f"{found:.{digits}f}" == shown


async def test_the_log_message(user: User, program: Path) -> None:
    client = await attached(user, {"logMessage": MESSAGE})
    await client.wait_event("terminated", timeout=LIMIT)
    told = bodies(client, "output")
    said = "".join(body["output"] for body in told)
    assert said_by(CONSOLE).items() <= said_by(said).items()
    lines = [body for body in told if " distances in " in body["output"]]
    place = {(body["source"]["path"], body["line"]) for body in lines}
    assert place == {(str(user.folder / PROGRAM), LINE)}
    marked = "".join(body["output"] for body in lines if body.get("outlier"))
    assert marked
    # Of a rank that is late nothing is told: most others have not said theirs in that moment.
    assert all(one.startswith("[2] ") and " in mm" in one for one in marked.splitlines())


def said_by(text: str) -> dict[str, set[int]]:
    """The ranks that say each line; those that say it a moment later have a line of their own."""
    found: dict[str, set[int]] = {}
    for ranks, words in re.findall(r"^\[([\d,-]+)\] (step \d+: .*)$", text, re.MULTILINE):
        for part in ranks.split(","):
            first, _, last = part.partition("-")
            found.setdefault(words, set()).update(range(int(first), int(last or first) + 1))
    return found


@pytest.fixture
def fixed(program: Path) -> None:
    """The page's last lines of `load_batch`, in place of the last one."""
    text = program.read_text("utf-8")
    before = text.index("    return Batch(unit, ")
    after = text.index("\n", before)
    program.write_text(text[:before] + FIX + text[after:], "utf-8")


async def test_the_fix(user: User, fixed: None) -> None:
    found = await losses(user, n=4)
    assert len(found) == 20
    assert max(found[5:]) < 0.1


async def losses(user: User, *words: str, n: int, **env: str) -> list[float]:
    """What rank 0 of an undisturbed run reports, step by step."""
    run = await start(user, "--no-wait", *RUN, *words, n=n, **env)
    assert (await run.ends()).code == 0
    return [float(line.split()[3]) for line in log(user, 0).splitlines() if line[:4] == "step"]


async def test_one_rank_learns_and_a_late_one_holds_up_and_nothing_else(
    user: User, program: Path
) -> None:
    assert (await losses(user, n=1))[-1] < 0.01
    late = {"DELAY_RANK": "1", "DELAY_MAX": "0.2"}
    assert len(await losses(user, "--steps", "4", n=2, **late)) == 4


async def test_the_condition_that_needs_no_step(user: User, program: Path) -> None:
    client = await attached(user, {"condition": NEXT_TIME})
    await until(lambda: bodies(client, "stopped"), within=LIMIT, what="a stop")
    entries = (await client.request("list", timeout=LIMIT))["ranks"]
    assert [each["rank"] for each in entries if each["state"] == "stopped"] == [2]
    assert await value(client, 2, "step") == "5"
    await client.disconnect(timeout=LIMIT)
