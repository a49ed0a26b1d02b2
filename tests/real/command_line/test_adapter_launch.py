"""`launch` by way of `dap-mux adapter`: the job belongs to the editor that asks for it."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Any, Final

import pytest

from dap_mux.client import DapClient, RequestFailed
from tests.real.driving import observing
from tests.support.processes.commands import LIMIT, User, bodies, listed
from tests.support.processes.editor_process import STUBBORN, Editor, launch
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy]


def said(client: DapClient) -> str:
    """All output so far."""
    return "".join(body["output"] for body in bodies(client, "output"))


async def test_launch_and_stop(editor: Editor) -> None:
    client = await editor.launches(
        nproc=2, cwd=str(editor.user.folder.parent), env={"MARK": "mine"}
    )
    entries = await listed(client, "line", editor.line, editor.line)
    begun = [f"begin {rank} mine {editor.user.folder.parent}\n" for rank in range(2)]
    # What ranks print is folded with what others print, for a moment: `list` may be faster.
    await client.wait_for(
        lambda: all(words in said(client) for words in begun), timeout=LIMIT, what="both begin"
    )
    (process,) = bodies(client, "process")
    assert process["name"] == f"{editor.script} (2 ranks)"
    pids = {entry["pid"] for entry in entries}
    assert pids <= editor.user.processes()
    await client.disconnect(terminateDebuggee=True)
    await editor.gone()
    await editor.user.nothing_is_left()


async def test_the_editor_learns_where_others_can_join(editor: Editor) -> None:
    client = await editor.launches(nproc=1)
    await listed(client, "state", "stopped")
    told = await client.request("session", timeout=LIMIT)
    file = await editor.adapter.session()
    assert told == {"address": f"{file['host']}:{file['port']}"}
    other = await observing(editor.adapter)
    assert await other.request("session", timeout=LIMIT) == told
    await other.close()
    await client.disconnect(terminateDebuggee=True)
    await editor.gone()


async def test_stop_ends_also_a_rank_that_does_not_want_to(user: User) -> None:
    """With the SIGTERM that VS Code sends as soon as `disconnect` is answered."""
    editor = Editor(user, await user.start("adapter", piped=True), STUBBORN)
    client = await editor.launches(nproc=1)
    await listed(client, "state", "stopped")
    await client.request("disconnect", {"terminateDebuggee": True}, timeout=LIMIT)
    with suppress(ProcessLookupError):  # it has ended already
        editor.adapter.process.send_signal(signal.SIGTERM)
    await editor.gone()
    await user.nothing_is_left()


@pytest.mark.parametrize("launcher", [False, True], ids=["local", "launcher"])
async def test_launch_to_the_end(editor: Editor, launcher: bool) -> None:
    editor.user.script("import os, sys\nsys.exit(3 * int(os.environ['RANK']))\n", "three.py")
    starts = [sys.executable, editor.user.script(LAUNCH, "launch.py"), "2"]
    size: dict[str, Any] = {"launcher": starts} if launcher else {"nproc": 2}
    await launch(editor.client, {"program": "three.py", **size, "basePort": free_ports(4)}, {})
    await editor.client.wait_event("terminated", timeout=LIMIT)
    assert bodies(editor.client, "exited") == [{"exitCode": 3}]
    await editor.client.disconnect()
    await editor.gone()


@pytest.mark.parametrize("how", ["disconnect", "closed"])
async def test_a_job_outlives_an_editor_that_does_not_ask_for_its_end(
    editor: Editor, how: str
) -> None:
    client = await editor.launches(nproc=2)
    pids = {entry["pid"] for entry in await listed(client, "state", "stopped", "stopped")}
    if how == "disconnect":
        await client.disconnect(terminateDebuggee=False)
    else:
        assert editor.adapter.process.stdin is not None
        editor.adapter.process.stdin.close()
    await editor.gone()
    assert pids <= editor.user.processes()
    editor.go.touch()
    await editor.user.nothing_is_left(within=LIMIT)


@pytest.mark.parametrize("launcher", [False, True], ids=["local", "launcher"])
@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_an_editor_that_goes_before_configuration_done_leaves_no_rank(
    user: User, how: str, launcher: bool
) -> None:
    """They wait for their first debugger, and there is no session to join."""
    editor = Editor(user, await user.start("adapter", piped=True), all_answered=False)
    client, program = editor.client, {"program": editor.script, "args": [str(editor.go)]}
    starts = [sys.executable, editor.user.script(LAUNCH, "launch.py"), "2"]
    size: dict[str, Any] = {"launcher": starts} if launcher else {"nproc": 2}
    await client.request("initialize", {"adapterID": "dap-mux", "clientID": "vscode"})
    client.send("launch", {**program, **size, "basePort": free_ports(4)})
    await client.wait_event("initialized", timeout=LIMIT)
    await listed(client, "state", "connecting", "connecting")
    await until(lambda: len(editor.user.processes()) >= 3, within=LIMIT, what="ranks are started")
    if how == "closed":
        assert editor.adapter.process.stdin is not None
        editor.adapter.process.stdin.close()
        await editor.gone()
    else:
        editor.adapter.process.send_signal(signal.SIGKILL)
        await editor.adapter.ends(within=LIMIT)
    await editor.user.nothing_is_left(within=LIMIT)


async def test_a_rank_that_dies_before_it_listens_is_explained(user: User) -> None:
    user.script("import os\nif 'RANK' in os.environ: print('no licence'); os._exit(7)\n",
                "sitecustomize.py")  # fmt: skip
    env = {"PYTHONPATH": str(user.folder)}
    editor = Editor(user, await user.start("adapter", piped=True, env=env))
    await editor.launches(nproc=1)
    await editor.client.wait_event("terminated", timeout=LIMIT)
    assert "rank 0 exited with 7 before it listened for a debugger" in said(editor.client)
    assert "no licence" in said(editor.client)
    assert bodies(editor.client, "exited") == [{"exitCode": 7}]
    await editor.client.disconnect()
    await editor.gone()


UNABLE: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({}, "launch needs `program`"),
    ({"program": "no.py"}, "no such file: no.py"),
    ({"program": "train.py", "nproc": "many"}, "`nproc` must be the number of ranks"),
    ({"program": "train.py", "cwd": "/nowhere/at/all"}, "no such folder: /nowhere/at/all"),
    ({"program": "train.py", "python": "/no/python"}, "/no/python"),
    ({"program": "train.py", "args": ["a\0"]}, r"`args`: .* contains a NUL"),
    ({"program": "train.py", "launcher": 7}, "`launcher` must be a command, such as 'torchrun"),
    ({"program": "train.py", "launcher": ["mpirun", 4]}, "`launcher` must be a command"),
    ({"program": "train.py", "launcher": "mpirun 'x"}, "No closing quotation"),
    ({"program": "train.py", "launcher": "no-such -n 4"}, "no program no-such in PATH"),
    (
        {"program": "train.py", "launcher": "mpirun -n 4", "nproc": 4},
        "pass the number of ranks to mpirun",
    ),
    ({"program": "missing.py", "launcher": "env"}, "no such file: missing.py"),
)


async def test_launches_that_cannot_be(editor: Editor) -> None:
    """All are asked of one adapter, which is alive after each."""
    client = editor.client
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    for arguments, sentence in UNABLE:
        with pytest.raises(RequestFailed, match=sentence):
            await client.request("launch", arguments, timeout=LIMIT)
    await client.disconnect()
    await editor.gone()
    assert not editor.user.processes()


async def test_stop_on_entry_stops_every_rank_at_the_first_line(editor: Editor) -> None:
    ports = free_ports(4)
    arguments = {"program": editor.script, "nproc": 2, "basePort": ports, "stopOnEntry": True}
    await launch(editor.client, arguments, {})
    await listed(editor.client, "line", 1, 1)
    await editor.client.wait_event("stopped", timeout=LIMIT)  # it is told a moment after `list`
    assert {body["reason"] for body in bodies(editor.client, "stopped")} == {"entry"}
    await editor.client.disconnect(terminateDebuggee=True)
    await editor.gone()
    await editor.user.nothing_is_left()


async def test_a_launcher_starts_the_ranks(editor: Editor) -> None:
    """Its command line in one text; the Python that runs dap-mux is in its PATH."""
    launcher = editor.user.script(LAUNCH, "launch.py")
    arguments = {
        "launcher": f"python {launcher} 4",
        "program": editor.script,
        "args": [str(editor.go)],
        "basePort": free_ports(8),
        "env": {"MARK": "mine"},
        "logDir": str(editor.user.folder / "logs"),
    }
    stop_at = editor.breakpoint("ranks(1,3): number > 0")
    await launch(editor.client, arguments, stop_at)
    await listed(editor.client, "state", "running", "stopped", "running", "stopped")
    log = editor.user.folder / "logs" / "launcher.log"
    begun = "begin 2 mine"  # a rank that runs may not have come so far
    await until(lambda: begun in log.read_text("utf-8"), within=LIMIT, what=begun)
    await editor.client.disconnect(terminateDebuggee=True)
    await editor.gone()
    await editor.user.nothing_is_left(within=LIMIT)
