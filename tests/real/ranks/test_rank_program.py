"""The in-rank agent: what the program sees of it, and what it says itself."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.real.ranks.agents import PROGRAMS, Start, neighbouring_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy]

# What the program sees

MIRROR = """\
import json, sys
main = sys.modules["__main__"]
names = {name: repr(value).split(" at 0x")[0] for name, value in sorted(globals().items())}
print("MIRROR", json.dumps([names, sys.argv, sys.path, main.__dict__ is globals()]))
"""


@pytest.mark.parametrize(
    "program", [["./mirror.py"], ["sub/../mirror.py"], ["-m", "mirror"], ["app"], ["sub/link.py"]]
)
async def test_a_program_sees_what_plain_python_shows_it(
    start: Start, tmp_path: Path, program: list[str]
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link.py").symlink_to(tmp_path / "mirror.py")
    for path in (tmp_path / "mirror.py", tmp_path / "app" / "__main__.py"):
        path.write_text(MIRROR)
    words = [*program, "-m", "--wait", "x y"]
    plain = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    expected = (await plain.communicate())[0].decode().strip()
    agent = await start("--no-wait", *words)
    assert await agent.ends() == 0
    assert [line for line in agent.text().splitlines() if "MIRROR" in line] == [expected]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("raise SystemExit", 0),
        ("raise SystemExit('words')", 1),
        ("import os; os._exit(9)", 9),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("syntax error", 1),
    ],
)
async def test_the_exit_code_is_the_programs_own(
    start: Start, script: Path, source: str, code: int
) -> None:
    script.write_text(source + "\n")
    agent = await start("--no-wait", "script.py", DAP_MUX_POST_MORTEM="0")
    assert await agent.ends() == code


@PROGRAMS
async def test_a_traceback_begins_with_the_users_first_frame(
    start: Start, script: Path, program: list[str]
) -> None:
    script.write_text("def fail():\n    raise ValueError('no')\n\nfail()\n")
    agent = await start("--no-wait", *program, DAP_MUX_POST_MORTEM="0")
    assert await agent.ends() == 1
    said = agent.text()
    traceback = said[said.index("Traceback") :].splitlines()
    assert traceback[1] == f'  File "{script}", line 4, in <module>'
    assert traceback[-1] == "ValueError: no"
    assert "dap_mux" not in "".join(traceback)
    assert "runpy" not in "".join(traceback)


async def test_the_programs_own_excepthook_is_called(start: Start, script: Path) -> None:
    script.write_text(
        "import sys, traceback\n"
        "def hook(kind, error, trace): print('HOOK', traceback.extract_tb(trace)[0].name)\n"
        "sys.excepthook = hook\n"
        "1 / 0\n"
    )
    agent = await start("--no-wait", "script.py", DAP_MUX_POST_MORTEM="off")
    assert await agent.ends() == 1
    assert "HOOK <module>" in agent.text()


async def test_threads_that_outlive_the_main_one_keep_their_globals(
    start: Start, script: Path
) -> None:
    script.write_text(
        "import sys, threading\n"
        "word = 'kept'\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    print(word, sys.modules['__main__'].word, flush=True)\n"
        "threading.Thread(target=late).start()\n"
    )
    agent = await start("--no-wait", "script.py")
    assert await agent.ends() == 0
    assert "kept kept" in agent.text()


# What it says, where it listens, how long it waits


async def test_it_says_who_and_where_it_is_and_nothing_else(start: Start, script: Path) -> None:
    agent = await start("--no-wait", "script.py", RANK="2", WORLD_SIZE="4")
    assert await agent.ends() == 0
    pid, port = agent.process.pid, agent.record["port"]
    assert agent.record == {
        "group": "job",
        "rank": 2,
        "host": "127.0.0.1",
        "port": port,
        "pid": pid,
        "coords": None,
        "world_size": 4,
    }
    assert agent.text().splitlines() == [
        (
            f"dap-mux: rank 2 of 4 listens for a debugger on 127.0.0.1:{port} (pid {pid}): "
            f"dap-mux attach 127.0.0.1:{port}"
        ),
        "total 8",
    ]


async def test_a_port_in_use_leaves_the_other_ranks_ports_alone(start: Start, script: Path) -> None:
    with neighbouring_ports(5) as row:
        base: int = row[0].getsockname()[1]
        row[1].listen()
        for one in (row[0], row[2], row[3], row[4]):
            one.close()
        agent = await start(
            "--base-port", str(base), "--no-wait", "script.py", RANK="1", WORLD_SIZE="3"
        )
        assert agent.record["port"] == base + 1 + 3
        assert await agent.ends() == 0


async def test_ranks_that_want_one_port_at_the_same_moment_all_get_one(
    start: Start, script: Path
) -> None:
    with neighbouring_ports(3) as row:
        base = str(row[0].getsockname()[1])
    agents = await asyncio.gather(*(start("--port", base, "script.py") for _ in range(3)))
    ports = [agent.record["port"] for agent in agents]
    assert int(base) in ports
    assert len(set(ports)) == 3


async def test_an_address_that_is_not_ours_is_a_clear_failure(start: Start, script: Path) -> None:
    agent = await start("--host", "host.invalid", "script.py", ready=False)
    assert await agent.ends() == 125
    assert "cannot listen for a debugger: host.invalid" in agent.text()


@pytest.mark.parametrize(
    ("words", "environ"),
    [(["--timeout", "0.2"], {}), ([], {"DEBUG_TIMEOUT": "0.2"})],
    ids=["flag", "variable"],
)
async def test_nobody_attaches_in_time(
    start: Start, script: Path, words: list[str], environ: dict[str, str]
) -> None:
    agent = await start(*words, "script.py", **environ)
    assert await agent.ends() == 124
    assert "no debugger attached within 0.2 s" in agent.text()
    assert "total" not in agent.text()


async def test_nobody_attaches_in_time_and_the_program_runs(start: Start, script: Path) -> None:
    agent = await start("--timeout", "0.2", "--on-timeout", "continue", "script.py")
    assert await agent.ends() == 0
    assert "continuing without one" in agent.text()
    assert "total 8" in agent.text()


async def test_an_interrupt_while_it_waits_is_quiet(start: Start, script: Path) -> None:
    agent = await start("script.py")
    agent.process.send_signal(signal.SIGINT)
    assert await agent.ends() == -signal.SIGINT
    assert "Traceback" not in agent.text()
    assert "was interrupted while it waited for a debugger" in agent.text()


async def test_an_interrupt_while_its_modules_load_is_quiet(
    start: Start, script: Path, tmp_path: Path
) -> None:
    """Ctrl-C right after Return: a traceback of ours for each rank says nothing to anybody."""
    loading = tmp_path / "loading"
    slow = f"open({str(loading)!r}, 'w').close()\nimport time\ntime.sleep(600)\n"
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "debugpy.py").write_text(slow)
    agent = await start("script.py", ready=False, PYTHONPATH=str(tmp_path / "slow"))
    await until(loading.exists, within=30, what="modules load")
    agent.process.send_signal(signal.SIGINT)
    assert await agent.ends() == -signal.SIGINT
    assert agent.text() == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "give a script"),
        (["missing.py"], "missing.py"),
        (["--timeout", "soon", "script.py"], "'soon' is not a number of seconds"),
        (["--port", "65536", "script.py"], "'65536' is not a port"),
        (["--port", "1", "--base-port", "2", "script.py"], "not allowed with"),
    ],
)
async def test_wrong_usage(start: Start, script: Path, words: list[str], complaint: str) -> None:
    agent = await start(*words, ready=False)
    assert await agent.ends() == 2
    assert complaint in agent.text()
