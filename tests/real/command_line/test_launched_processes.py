"""Which processes of a launcher's job become ranks, and in which Pythons that works."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dap_mux.rank.hook import sitecustomize
from tests.real.command_line.launched_job import finish, go_on, launch
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.editor_process import Editor
from tests.support.processes.editor_process import launch as editor_launch
from tests.support.processes.launchers import CHILDREN, LAUNCH, SPAWNS
from tests.support.processes.proc_net import free_ports
from tests.support.processes.pythons import other_python

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
PRINT_RANK = "import os\nprint('rank', os.environ['RANK'], flush=True)  # here\n"


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
async def test_workers_that_say_themselves_which_rank_they_are(user: User, how: str) -> None:
    script = user.script(SPAWNS)
    run = await launch(user, script, how)
    mine = [{"line": line_of(script, "square"), "condition": "ranks(1:3):"}]
    client = await joined(run, {script: mine})
    await listed(client, "state", "exited", "stopped", "stopped")
    entries = await listed(client, "function", None, "work", "work")  # known after the stop
    await go_on(client, entries)
    await finish(client)
    done = await run.ends()
    workers = [f"worker {rank} {rank * rank}" for rank in range(3)]
    assert (done.code, sorted(done.out.splitlines())) == (0, workers)
    await user.nothing_is_left()


async def test_children_of_ranks_inherit_the_variables_and_are_none(user: User) -> None:
    """A DataLoader's workers, say: they run as without us, and wait for nobody."""
    script = user.script(CHILDREN)
    user.script("print('script runs')\n", "child.py")
    run = await launch(user, user.script(LAUNCH, "launch.py"), "2", script)
    lines = [line_of(script, "in a child"), line_of(script, "after")]
    client = await joined(run, {script: lines})
    entries = await listed(client, "line", lines[1], lines[1])
    await go_on(client, entries)
    await finish(client)
    done = await run.ends()
    assert done.code == 0, done.err
    for rank in range(2):
        for how in ("fork", "spawn", "forkserver"):
            assert f"rank {rank} {how} [0, 1, 4]" in done.out
    assert done.out.count("script runs") == 2
    assert "dap-mux: rank " not in done.err
    await user.nothing_is_left()


async def test_a_rank_on_another_machine_is_not_taken_for_one_of_ours(user: User) -> None:
    """It has said that it listens on its own loopback, where something else may listen here."""
    text = "import json, os, time\n"
    text += "record = {'rank': 0, 'host': '127.0.0.1', 'port': 5678, 'pid': 1, 'world_size': 1}\n"
    text += "folder = os.environ['DAP_MUX_RENDEZVOUS']\n"
    text += "with open(f'{folder}/part', 'w') as file:\n    json.dump(record, file)\n"
    text += "os.rename(f'{folder}/part', f'{folder}/node2-1.json')\n"
    text += "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
    run = await launch(user, user.script(text))
    client = await joined(run)
    (entry,) = await listed(client, "state", "waiting")
    assert entry["reason"].startswith("runs on node2 and listens on 127.0.0.1:5678 there")
    await run.says("rank 0 runs on node2")
    (user.folder / "go").touch()
    await finish(client)
    assert (await run.ends()).code == 0


async def test_two_launchers_in_one_job_are_two_groups(user: User) -> None:
    script = user.script(PRINT_RANK)
    user.script(LAUNCH, "launch.py")
    both = "import subprocess as s, sys\n"
    both += f"start = lambda: s.Popen([sys.executable, 'launch.py', '2', {script!r}])\n"
    both += "for each in [start(), start()]: each.wait()\n"
    run = await launch(user, user.script(both, "both.py"))
    client = await joined(run, {script: [line_of(script, "here")]})
    entries = await listed(client, "state", *["stopped"] * 4)
    assert [(entry["group"], entry["rank"]) for entry in entries] == [
        ("job", 0), ("job", 1), ("job-2", 0), ("job-2", 1)
    ]  # fmt: skip
    await go_on(client, entries)
    await finish(client)
    assert (await run.ends()).code == 0


async def test_a_python_without_debugpy_borrows_ours(user: User, tmp_path: Path) -> None:
    text = "import dap_mux, debugpy, sys\ntry:\n    import anyio\nexcept ImportError:\n"
    text += "    sys.stdout.write('nothing else is there\\n')  # here\n"
    script, python = user.script(text), other_python(tmp_path / "venv")
    run = await launch(user, user.script(LAUNCH, "launch.py"), "2", script, python=python)
    client = await joined(run, {script: [line_of(script, "here")]})
    await go_on(client, await listed(client, "state", "stopped", "stopped"))
    await finish(client)
    done = await run.ends()
    assert (done.code, done.out.count("nothing else is there")) == (0, 2)


def test_no_debugpy_at_all_is_a_clear_failure(user: User, tmp_path: Path) -> None:
    """Ours may be too new for the job's Python: then there is none to borrow."""
    python, script = other_python(tmp_path / "venv"), user.script(PRINT_RANK)
    hook = Path(sitecustomize.__file__).parent
    environ = {"PYTHONPATH": str(hook), "DAP_MUX_RENDEZVOUS": str(tmp_path), "RANK": "1"}
    done = subprocess.run(
        [python, script], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        "dap-mux: rank 1 has no debugpy (No module named 'debugpy'): "
        f"{python} -m pip install debugpy\n"
    )


def test_ctrl_c_while_debugpy_is_imported(user: User, tmp_path: Path) -> None:
    """The rank dies of it, as any program does that has just begun."""
    user.script("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", "debugpy.py")
    path = f"{Path(sitecustomize.__file__).parent}:{user.folder}"
    environ = {"PYTHONPATH": path, "DAP_MUX_RENDEZVOUS": str(tmp_path), "RANK": "1"}
    words = [other_python(tmp_path / "venv"), user.script(PRINT_RANK)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


async def test_the_users_own_customizing_goes_on(user: User, tmp_path: Path) -> None:
    user.script("import builtins\nbuiltins.MINE = 'mine'\n", "sitecustomize.py")
    site = tmp_path / "base" / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text("import builtins\nbuiltins.YOURS = 'yours'\n")
    text = "import os, sitecustomize\n"
    text += "sys_path = os.environ['PYTHONPATH']\n"
    text += "print(MINE, YOURS, os.path.basename(sitecustomize.__file__), flush=True)\n"
    text += "assert os.path.dirname(sitecustomize.__file__) == os.path.dirname(__file__)\n"
    script = user.script(text)
    run = await launch(
        user,
        user.script(LAUNCH, "launch.py"),
        "1",
        script,
        python=_base_python(),
        options=("--no-wait",),
        PYTHONPATH=str(user.folder),
        PYTHONUSERBASE=str(tmp_path / "base"),
    )
    done = await run.ends()
    assert (done.code, done.out.splitlines()[-1]) == (0, "mine yours sitecustomize.py"), done.err


def _base_python() -> str:
    """The one that our environment was made from: there, a user's own packages are looked for."""
    return str(Path(sys.base_prefix) / "bin" / "python{}.{}".format(*sys.version_info))


async def test_one_that_fails_is_told_as_python_does_and_the_rank_is_one(user: User) -> None:
    user.script("raise ValueError('of the user')\n", "sitecustomize.py")
    script = user.script(PRINT_RANK)
    launcher = user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "1", script, PYTHONPATH=str(user.folder))
    client = await joined(run, {script: [line_of(script, "here")]})
    await client.wait_event("stopped", timeout=LIMIT)
    await client.disconnect()
    done = await run.ends()
    assert done.code == 0
    assert "Error in sitecustomize" in done.err
    assert bodies(client, "stopped")[0]["reason"] == "breakpoint"


@pytest.mark.parametrize("just_my_code", [True, False])
async def test_ranks_stop_at_the_first_line_where_an_editor_wants_that(
    editor: Editor, just_my_code: bool
) -> None:
    launcher = editor.user.script(LAUNCH, "launch.py")
    script = editor.user.script('"""A docstring."""\nimport os\nprint(os.environ["RANK"])\n')
    arguments = {
        "launcher": [sys.executable, launcher, "2"],
        "program": script,
        "basePort": free_ports(4),
        "stopOnEntry": True,
        "justMyCode": just_my_code,
    }
    await editor_launch(editor.client, arguments, {})
    entries = await listed(editor.client, "line", 1, 1)  # a stop's line may be known after it
    assert {(entry["path"], entry["state"]) for entry in entries} == {(script, "stopped")}
    assert {entry["reason"] for entry in entries} == {"entry"}
    await go_on(editor.client, entries)
    await finish(editor.client)
    await editor.gone()


async def test_a_launcher_does_not_read_what_the_editor_says(editor: Editor) -> None:
    """As mpirun does, for its first rank."""
    text = "import sys\nopen('heard', 'w').write(repr(sys.stdin.read()))\n"
    reads = editor.user.script(text, "reads.py")
    await editor_launch(editor.client, {"launcher": [sys.executable], "program": reads}, {})
    await finish(editor.client)
    await editor.gone()
    assert (editor.user.folder / "heard").read_text() == "''"


async def test_what_is_piped_into_run_is_the_jobs(user: User) -> None:
    script = user.script("import sys\nprint(sys.stdin.read())\n")
    run = await user.start("run", "--", sys.executable, script, piped=True)
    out, _ = await run.process.communicate(b"data")
    assert (run.process.returncode, out) == (0, b"data\n")
