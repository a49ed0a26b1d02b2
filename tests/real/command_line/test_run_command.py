"""`dap-mux run` as its users see it: the installed command, real ranks, a stock client."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from dap_mux.client import DapClient, Json
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed, threads
from tests.support.processes.proc_net import free_ports
from tests.support.processes.pythons import other_python
from tests.support.processes.run_command import COUNT, WAIT, listening, log, resume, start
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


@pytest.mark.quick
async def test_four_ranks_from_the_first_line_to_the_exit_code(user: User) -> None:
    script = user.script(COUNT)
    line = line_of(script, "loss")
    run = await start(user, script, "--epochs", "2", n=4)
    await listening(user, 4)
    assert not any("begin" in log(user, rank) for rank in range(4)), "ranks wait"
    mine = [{"line": line, "condition": "ranks(2): number == 1"}]
    client = await joined(run, {script: mine})

    stop = await client.wait_event("stopped", timeout=LIMIT)
    entries = await all_but_one_ended(client, line)
    assert [entry["state"] for entry in entries] == ["exited", "exited", "stopped", "exited"]
    assert (entries[2]["threadId"], entries[2]["line"]) == (stop["threadId"], line)
    assert entries[2]["pid"] in user.processes()
    await client.request("next", {"threadId": stop["threadId"]}, timeout=LIMIT)
    stepped = await client.wait_event("stopped", timeout=LIMIT)
    assert (stepped["reason"], stepped["threadId"]) == ("step", stop["threadId"])
    trace = await client.request("stackTrace", {"threadId": stop["threadId"]}, timeout=LIMIT)
    top = trace["stackFrames"][0]
    assert top["line"] == line_of(script, "return")
    loss = {"expression": "loss", "frameId": top["id"]}
    assert (await client.request("evaluate", loss, timeout=LIMIT))["result"] == "21"

    await resume(client, stop["threadId"])
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == [{"exitCode": 0}]
    await client.disconnect()
    done = await run.ends()
    assert done.code == 0
    assert "dap-mux: ranks 0-3 exited with 0" in done.err
    assert not list(user.sessions.iterdir())

    ports = set()
    for rank in range(4):
        text = log(user, rank)
        environ = json.loads(text.partition("begin ")[2].partition("\n")[0])
        expected = [str(rank), str(rank), "4", "4", "127.0.0.1"]
        assert [environ[name] for name in NAMES] == expected
        ports.add(int(environ["MASTER_PORT"]))
        assert f"end {rank}\n" in text
        assert f"[{rank}] end {rank}\n" in done.out
        assert f"[{rank}] end {rank}\n" in "".join(e["output"] for e in bodies(client, "output"))
    assert len(ports) == 1


async def all_but_one_ended(client: DapClient, line: int) -> list[Json]:
    """Rank 2 is at the line; a rank's exit code is told before or after its state."""
    await listed(client, "line", None, None, line, None)
    await listed(client, "state", "exited", "exited", "stopped", "exited")
    return await listed(client, "exitCode", 0, 0, None, 0)


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("sys.exit(3)", 3, "rank 1 exited with 3"),
        ("os.kill(os.getpid(), 9)", 137, "rank 1 was terminated by SIGKILL"),
    ],
    ids=["exit", "signal"],
)
async def test_the_first_failure_is_the_exit_code(
    user: User, end: str, code: int, words: str
) -> None:
    script = user.script(f"import os, sys\nif os.environ['RANK'] == '1':\n    {end}\n")
    run = await start(user, script, n=2, DAP_MUX_POST_MORTEM="off")
    client = await joined(run)
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == [{"exitCode": code}]
    await client.disconnect()
    done = await run.ends()
    assert done.code == code
    assert "dap-mux: rank 0 exited with 0" in done.err
    assert f"dap-mux: {words}" in done.err


async def test_one_rank_is_the_plain_case(user: User) -> None:
    script = user.script("x = 1\nprint('x is', x)  # stop\n")
    run = await start(user, script, n=1)
    client = await joined(run, {script: [2]})
    stop = await client.wait_event("stopped", timeout=LIMIT)
    assert await threads(client, 1) == {"MainThread": stop["threadId"]}
    await resume(client, stop["threadId"])
    await client.wait_event("terminated", timeout=LIMIT)
    (process,) = bodies(client, "process")
    assert process["name"] == script
    await client.disconnect()
    done = await run.ends()
    assert (done.code, done.out) == (0, "x is 1\n")
    text = "".join(e["output"] for e in bodies(client, "output") if e["category"] == "stdout")
    assert text == "x is 1\n"


@pytest.mark.parametrize("by_option", [False, True])
async def test_the_python_of_the_ranks_needs_nothing_of_ours(
    user: User, tmp_path: Path, by_option: bool
) -> None:
    """That of the active environment, or of `--python`: it borrows dap-mux and debugpy."""
    python = other_python(tmp_path / "venv")
    text = "import sys, dap_mux, debugpy\ntry:\n    import anyio\nexcept ImportError:\n"
    script = user.script(f"{text}    print(sys.prefix, 'has nothing')  # here\n")
    words = ["--python", python] if by_option else []
    variables = {"VIRTUAL_ENV": "/elsewhere" if by_option else str(tmp_path / "venv")}
    run = await start(user, *words, script, n=2, **variables)
    client = await joined(run, {script: [line_of(script, "here")]})
    stop = await client.wait_event("stopped", timeout=LIMIT)
    await listed(client, "state", "stopped", "stopped")
    await resume(client, stop["threadId"])
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
    done = await run.ends()
    assert (done.code, done.out.count(f"{tmp_path / 'venv'} has nothing\n")) == (0, 2)
    assert f"the ranks' Python is {python}" in done.err


async def test_no_such_python_is_a_clear_error(user: User) -> None:
    done = await (await start(user, "--python", "/no/python", user.script(COUNT), n=1)).ends()
    assert (done.code, done.out) == (2, "")
    assert done.err == "dap-mux: --python /no/python: there is no such program\n"


async def test_ports_in_use_the_next_free_ones_and_everybody_knows(user: User) -> None:
    base = free_ports(6)  # 4 for ranks and their way out, then the session's and its next
    script = user.script("import time\nprint('here')  # stop\n")
    with socket.socket() as taken, socket.socket() as wanted:
        taken.bind(("127.0.0.1", base + 1))
        taken.listen()
        wanted.bind(("127.0.0.1", base + 4))
        wanted.listen()
        words = ["--base-port", str(base), "--listen", str(base + 4), "--log-dir", "logs"]
        run = await user.start("run", "-n", "2", *words, script)
        session = await run.session()
        assert session["port"] == base + 5
        client = await joined(run, {script: [2]})
        stop = await client.wait_event("stopped", timeout=LIMIT)
        entries = await listed(client, "state", "stopped", "stopped")
        ports = [int(entry["endpoint"].rpartition(":")[2]) for entry in entries]
        assert ports == [base, base + 3]
        await resume(client, stop["threadId"])
        await client.wait_event("terminated", timeout=LIMIT)
        await client.disconnect()
        done = await run.ends()
    assert done.code == 0
    assert f"port {base + 4} is in use; listening on {base + 5} instead" in done.err
    assert f"rank 1: port {base + 1} is in use, took {base + 3}" in done.err


async def test_no_wait_runs_a_module_without_a_debugger(user: User) -> None:
    user.script("import sys\nprint(__name__, sys.argv[1:])\n", "program.py")
    done = await (await start(user, "--no-wait", "-m", "program", "-n", "7", n=2)).ends()
    assert done.code == 0
    assert "waiting" not in done.err
    assert sorted(done.out.splitlines()) == [f"[{rank}] __main__ ['-n', '7']" for rank in range(2)]


async def test_ranks_outlive_a_killed_session(user: User) -> None:
    """Every rank runs on. How soon: `test_attach_command`, which has the machine to itself."""
    script = user.script(WAIT)
    run = await start(user, script, n=2)
    client = await joined(run, {script: [line_of(script, "wait")]}, all_answered=False)
    await listed(client, "state", "stopped", "stopped")
    (user.folder / "go").touch()
    run.process.kill()
    ended = lambda: all("end\n" in log(user, rank) for rank in range(2))  # noqa: E731
    await until(ended, within=LIMIT, what="both ranks at their end")
    assert (await run.ends()).code == -signal.SIGKILL
    await user.nothing_is_left()
