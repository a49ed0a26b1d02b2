"""`dap-mux record` and `save` with real ranks: what is in the report, and the exit codes."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import random
import re
import shlex
import zipfile
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.pure.insight.why.verdicts import EXIT_CODES
from tests.real.driving import joined
from tests.real.reports.recording import TRAIN, WITHIN, record, report_of, with_launcher
from tests.support.clients.jobs import serving
from tests.support.planted_secrets import FORMS
from tests.support.processes.commands import LIMIT, User, line_of, listed

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]
ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = (ROOT / "docs/record.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL, PLAN, *_ = (block for _, block in BLOCK.findall(PAGE))


async def test_a_wrong_value(user: User) -> None:
    line = line_of(user.script(TRAIN), "return")
    condition = f"train.py:{line}, n > 0"
    done = await record(user, "--break", condition, "--compare", "loss", "--compare", "missing")
    assert done.code == 0, done.err
    contents = report_of(user)
    assert (contents.report.job_exit, contents.report.ranks) == (0, (0, 1, 2, 3))
    assert contents.report.states == {"exited": "0-3"}
    assert [stop.title for stop in contents.stops] == [
        f"ranks 0-3 stopped at train.py:{line} (breakpoint)"
    ] * 2
    first = contents.stops[0]
    assert first.compared["loss"]["outliers"] == "2"
    assert first.compared["missing"]["errors"][0]["message"].startswith("NameError")
    values = {at.ranks: at.values["loss"] for at in first.at}
    assert values == {"0": "1.0", "1": "1.0", "2": "11.0", "3": "1.0"}
    step, module = first.at[2].threads[0].frames[:2]
    assert [(one.name, one.value, one.type) for one in step.locals] == [
        ("loss", "11.0", "float"),
        ("n", "1", "int"),
    ]
    assert {one.name: one.value for one in module.locals}["rank"] == "2"
    assert contents.texts == {step.path: TRAIN}
    assert "step 2" in "".join(one.text for one in contents.output if one.ranks)
    page = (user.folder / "report.html").read_text("utf-8")
    assert '<tr class="out"><td>loss</td><td class="ranks">2</td>' in page


@pytest.mark.parametrize("words", [(), ("--dial",)])
async def test_an_exception_in_one_of_four_ranks(user: User, words: tuple[str, ...]) -> None:
    path = user.script(TRAIN)
    done = await record(user, "--on-exception", *words, job=("fail",))
    assert done.code == 1, done.err
    contents = report_of(user)
    [stop] = contents.stops
    assert stop.title == f"rank 1 stopped at train.py:{line_of(path, 'fail')} (exception)"
    [failure] = [at.exception for at in stop.at if at.exception]
    assert (failure.type, failure.text) == ("ValueError", "shard is truncated")
    [frame] = [at.threads[0].frames[0] for at in stop.at if at.exception]
    assert {one.name: one.value for one in frame.locals}["rank"] == "1"
    assert [at.ranks for at in stop.at if at.state == "running"] == ["0,2-3"]
    assert contents.report.job_exit == 1
    assert contents.report.end in done.err
    assert "ValueError: shard is truncated" in contents.report.end_block


async def test_without_the_option_an_exception_stops_nobody(user: User) -> None:
    user.script(TRAIN)
    done = await record(user, job=("fail",))
    assert done.code == 1, done.err
    contents = report_of(user)
    assert contents.stops == ()
    assert "ValueError: shard is truncated" in contents.report.end_block


async def test_a_hang(user: User) -> None:
    path = user.script(TRAIN)
    done = await record(user, "--on-hang", "1s", job=("hang",))
    contents = report_of(user)
    assert contents.report.why["verdict"] == "lock-cycle"
    assert done.code == contents.report.verdict_exit == EXIT_CODES["lock-cycle"], done.err
    assert contents.report.job_exit is None
    stop = contents.stops[-1]
    assert stop.why == contents.report.why
    [hung] = [at for at in stop.at if at.state == "running"]
    assert (hung.ranks, hung.threads[0].frames[0].line) == ("2", line_of(path, "hang"))
    await user.nothing_is_left()


WATCHED: Final = """\
import os, sys, threading, time

rank = int(os.environ["RANK"])
seen = set()

def step(n):
    import debugpy
    seen.update((sys.gettrace(), debugpy.is_client_connected()))
    if hasattr(sys, "monitoring"):
        seen.update(map(sys.monitoring.get_tool, range(6)))

end = time.monotonic() + 2
while time.monotonic() < end:
    step(0)
    thread = threading.Thread(target=step, args=[1])
    thread.start()
    thread.join()
print("seen", seen, flush=True)
print(f"rank {rank} is last", file=sys.stderr)
"""


async def test_a_pass_stops_nowhere_and_has_no_debugger_in_any_rank(user: User) -> None:
    user.script(WATCHED)
    done = await record(user, "--on-exception", "--on-hang", "60s", "--to", "pass.dapmux")
    assert done.code == 0, done.err
    contents = report_of(user, "pass.dapmux")
    assert (contents.stops, contents.report.why) == ((), {})
    assert contents.report.end == "the job ended with exit code 0"
    assert contents.report.states == {"exited": "0-3"}
    last = [(one.ranks, one.text) for one in contents.output if one.ranks]
    nothing = "seen {False, None}\n", "seen {None, False}\n"
    assert all(text.startswith(nothing) for _, text in last), last
    assert [(ranks, text.splitlines()[-1]) for ranks, text in last] == [
        (str(rank), f"rank {rank} is last") for rank in range(4)
    ]


async def test_ranks_that_may_be_of_a_cluster_get_a_debugger_at_once(user: User) -> None:
    """Nothing else shows what fails in a cluster's worker."""
    user.script("import debugpy\nwhile not debugpy.is_client_connected():\n    pass\n")
    user.environ["DAP_MUX_GROUP"] = "trainer"
    done = await record(user, "--on-exception", ranks=2)
    assert done.code == 0, done.err
    assert report_of(user).report.states == {"exited": "0-1"}


HANGS_UNTIL_DEBUGGED: Final = """\
import threading, time

import debugpy

lock = threading.Lock()

def free():
    while not debugpy.is_client_connected():
        time.sleep(0.01)
    lock.release()

lock.acquire()
threading.Thread(target=free).start()
with lock:
    pass
while debugpy.is_client_connected():
    time.sleep(0.01)
print("without a debugger again")
"""


async def test_a_job_that_seems_to_hang_has_a_debugger_for_as_long_as_it_takes(user: User) -> None:
    user.script(HANGS_UNTIL_DEBUGGED)
    done = await record(user, "--on-hang", "1s", ranks=2)
    assert done.code == 0, done.err
    contents = report_of(user)
    assert (contents.report.why, contents.stops) == ({}, ())
    assert [(one.ranks, one.text) for one in contents.output if one.ranks] == [
        ("0-1", "without a debugger again\n")
    ]


async def test_the_last_stops_are_kept(user: User) -> None:
    path = user.script("def step(n):\n    return n  # return\nfor n in range(23):\n    step(n)\n")
    done = await record(user, "--break", f"train.py:{line_of(path, 'return')}", ranks=1)
    assert done.code == 0, done.err
    contents = report_of(user)
    assert (len(contents.stops), contents.report.stops_before) == (20, 3)
    last = contents.stops[-1].at[0].threads[0].frames[0]
    assert [one.value for one in last.locals] == ["22"]


async def test_no_secret_is_in_either_file(user: User) -> None:
    chance = random.Random(35)
    words = [make(chance) for _, make in FORMS]
    texts = [form.format(word) for (form, _), word in zip(FORMS, words, strict=True)]
    lines = [f"value_{at} = {text!r}\nprint({text!r})" for at, text in enumerate(texts)]
    names = ["password", "api_key", "nested", "loss"]
    lines += [f"password = {words[0]!r}", f"api_key = [{words[1]!r}]"]
    lines += [f"nested = {{'db': {{'password': {words[2]!r}}}, 'token': {words[3]!r}}}"]
    lines += ["import os\nloss = dict(os.environ)", "raise ValueError(nested)  # stop"]
    path = user.script("\n".join(lines) + "\n")
    stop = line_of(path, "stop")
    asked = [word for name in names for word in ("--compare", name)]
    trace = ["--trace", f"train.py:{stop}", "is {password} and {nested}"]
    at = ["--break", f"train.py:{stop}", "--on-exception"]
    done = await record(user, *at, *asked, *trace, job=("--password", words[4]), ranks=2)
    assert done.code == 1, done.err
    with zipfile.ZipFile(user.folder / "report.dapmux") as report:
        members = {name: report.read(name).decode() for name in report.namelist()}
    members["page"] = (user.folder / "report.html").read_text("utf-8")
    for name, text in members.items():
        assert not [word for word in words if word in text], name
    assert "[redacted: password]" in members["page"]
    assert len(report_of(user).texts[path].splitlines()) == len(Path(path).read_text().splitlines())


async def test_save_pauses_and_continues_nobody(user: User) -> None:
    path = user.script(TRAIN + "while True:\n    time.sleep(0.01)\n")
    run = await serving(user, path, n=2)
    waiting = await user.does("save", "waiting.dapmux")
    assert waiting.code == 0, waiting.err
    states = {at.state for at in report_of(user, "waiting.dapmux").stops[0].at}
    assert states == {"waiting"}
    line = {"line": line_of(path, "return"), "condition": "ranks(1):"}
    client = await joined(run, {path: [line]})
    await stopped_and_running(client)
    saved = await user.does("save", "--session", str(run.session_path))
    assert saved.code == 0, saved.err
    await stopped_and_running(client)
    [stop] = report_of(user).stops
    first, second = sorted(stop.at, key=lambda at: at.ranks)
    assert (first.state, second.state) == ("running", "stopped")
    assert second.threads[0].frames[0].locals[0].name == "loss"
    await client.disconnect(terminateDebuggee=True)
    await run.ends()


async def stopped_and_running(client: DapClient) -> None:
    """Rank 0 runs, rank 1 is stopped."""
    await listed(client, "state", "running", "stopped", within=LIMIT)


@pytest.mark.heavy
async def test_the_commands_of_the_page_run(user: User) -> None:
    path = user.script(TRAIN)
    assert f"train.py:{line_of(path, 'return')}" in SHELL
    env = with_launcher(user)
    user.script(PLAN, "record.toml")
    for command in SHELL.splitlines():
        words = shlex.split(command, comments=True)[1:]
        if words[0] == "save":
            run = await serving(user, path, n=2)
            assert (await user.does(*words)).code == 0
        else:
            run = await user.start(*words, env=env)
            done = await run.ends(within=WITHIN)
            assert done.code == 0, done.err
            assert "--plan" not in words or report_of(user).stops[0].compared["loss"]["outliers"]
    traced = "".join(one.text for one in report_of(user, "traced.dapmux").output)
    assert "loss 12.0" in traced
    assert report_of(user, "now.dapmux").stops


async def test_a_launcher_that_is_not_there(user: User) -> None:
    done = await user.does("record", "--", "no-such-launcher")
    assert done.code in (2, 125)
    assert "no-such-launcher" in done.err
