"""`dap-mux adapter` as an editor starts it: DAP on standard input and output, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import Any

import pytest

from dap_mux.client import DapClient, RequestFailed
from tests.real.driving import StartRanks, joined
from tests.support.clients.conversation import Conversation
from tests.support.processes.commands import LIMIT, User, listed, threads
from tests.support.processes.editor_process import Editor, finish

pytestmark = pytest.mark.real


@pytest.mark.quick
async def test_attach_by_the_stock_words_and_a_second_client_by_tcp(
    editor: Editor, start_ranks: StartRanks
) -> None:
    ranks = await start_ranks(4, editor.script, arguments=[str(editor.go)])
    attach = {"connect": {"host": "127.0.0.1", "port": ranks[0].port}, "ranks": 4}
    client = editor.client
    stop_at = editor.breakpoint("ranks(0-1): number > 0")
    await client.handshake(attach, breakpoints=stop_at, client_id="vscode", timeout=LIMIT)
    await listed(client, "state", "stopped", "stopped", "running", "running")
    assert list(await threads(client, 4)) == [f"rank {n}" for n in range(4)]

    second = await joined(editor.adapter, name="second")
    stop = await second.wait_event("stopped", timeout=LIMIT)
    assert stop["threadId"] in (await threads(client, 4)).values()
    await second.disconnect()
    with pytest.raises(RequestFailed, match="does not own the job"):
        await client.request("terminate", timeout=LIMIT)
    await client.disconnect(terminateDebuggee=True)
    await editor.gone()
    assert all(rank.running for rank in ranks), "an attach has no say over the job"
    await finish(editor, ranks)


async def test_attach_to_endpoints_in_groups_with_options_of_the_launch_configuration(
    editor: Editor, start_ranks: StartRanks
) -> None:
    ranks = await start_ranks(3, editor.script, arguments=[str(editor.go)])
    ports = [rank.port for rank in ranks]
    endpoints = [f"trainer=127.0.0.1:{ports[0]}-{ports[1]}", f"eval=127.0.0.1:{ports[2]}"]
    client = editor.client
    await client.handshake({"endpoints": endpoints, "view": "classes"}, timeout=LIMIT)
    entries = await listed(client, "state", "running", "running", "running")
    assert [(one["group"], one["rank"]) for one in entries] == [
        ("eval", 0), ("trainer", 0), ("trainer", 1)
    ]  # fmt: skip
    assert len(await threads(client, 2)) == 2, "one row a group: all its ranks run"
    assert (await client.request("view"))["value"] == "classes"
    await client.disconnect()
    await editor.gone()
    await finish(editor, ranks)


@pytest.mark.heavy
@pytest.mark.alone
@pytest.mark.parametrize("how", ["closed", "SIGTERM"])
async def test_an_editor_that_vanishes_leaves_the_ranks_running(
    user: User, start_ranks: StartRanks, how: str
) -> None:
    editor = Editor(user, await user.start("adapter", piped=True))
    ranks = await start_ranks(2, editor.script, arguments=[str(editor.go)])
    attach = {"endpoints": [f"127.0.0.1:{ranks[0].port}+2"]}
    await editor.client.handshake(attach, breakpoints=editor.breakpoint(), timeout=LIMIT)
    await listed(editor.client, "state", "stopped", "stopped")
    if how == "closed":
        assert editor.adapter.process.stdin is not None
        editor.adapter.process.stdin.close()
    else:
        editor.adapter.process.send_signal(signal.SIGTERM)
    await editor.gone(within=5)
    await finish(editor, ranks)


async def test_a_refused_attach_can_be_put_right(editor: Editor, start_ranks: StartRanks) -> None:
    """One refusal of each module that refuses; the others are in that module's unit tests."""
    ranks = await start_ranks(1, editor.script, arguments=[str(editor.go)])
    await editor.client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "attach needs `endpoints`"),
        ({"endpoints": "localhost"}, "a port is missing"),
        ({"endpoints": [":5678"], "view": "pretty"}, "launch.json view"),
    )
    for arguments, sentence in refused:
        with pytest.raises(RequestFailed, match=sentence):
            await editor.client.request("attach", arguments, timeout=LIMIT)
    again = editor.client.send("attach", {"port": ranks[0].port})
    await editor.client.wait_event("initialized", timeout=LIMIT)
    await editor.client.request("configurationDone", timeout=LIMIT)
    assert (await asyncio.wait_for(again, LIMIT))["success"]
    await listed(editor.client, "state", "running")
    await editor.client.disconnect()
    await editor.gone()
    await finish(editor, ranks)


# Standard input and output


async def test_sockets_for_standard_input_and_output(user: User) -> None:
    """Node starts its children like that, and so VS Code does."""
    pairs = [socket.socketpair(), socket.socketpair()]
    (to_stdin, stdin), (from_stdout, stdout) = pairs
    adapter = await user.start("adapter", sockets=(stdin.fileno(), stdout.fileno()))
    stdin.close()
    stdout.close()
    reader, idle = await asyncio.open_connection(sock=from_stdout)
    _, writer = await asyncio.open_connection(sock=to_stdin)
    client = DapClient(reader, writer, tap=Conversation("editor").tap)
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await client.disconnect()
    idle.close()
    assert (await adapter.ends()).code == 0


async def test_an_editor_that_is_gone_before_the_adapter_listens_to_it(user: User) -> None:
    """Nobody reads its standard output any more, and its standard input is at its end."""
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    adapter = await user.start("adapter", sockets=(stdin, stdout))
    for end in (stdin, to_stdin, from_stdout, stdout):
        os.close(end)
    assert (await adapter.ends()).code == 0


async def test_without_an_editor_it_says_what_it_is_for(user: User) -> None:
    done = await user.does("adapter")
    sentence = "dap-mux: standard input must be a pipe to an editor that speaks DAP\n"
    assert (done.code, done.out, done.err) == (2, "", sentence)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"help\n", "not a DAP header: b'help"),
        (b"Content-Length: 2\r\n\r\n[]", ""),
    ],
)
async def test_what_is_no_dap_ends_it_with_an_error(user: User, said: bytes, why: str) -> None:
    """Its standard input stays open: a person at a terminal would wait for ever."""
    command = await user.start("adapter", piped=True)
    assert command.process.stdin is not None
    command.process.stdin.write(said)
    done = await command.ends()
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if line.startswith("dap-mux: closed")]
    assert f"closed standard input, where DAP was expected: {why}" in line
    assert "Traceback" not in done.err


# What an editor's start-up time depends on


async def test_it_imports_nothing_that_it_does_not_need(user: User) -> None:
    """The running adapter's own modules, told by an audit of its imports."""
    heavy = {"pygls", "lsprotocol", "rich", "typer", "click", "numpy", "torch", "debugpy", "pydevd"}
    heavy |= {"difflib", "email", "statistics", "zipfile"}
    if sys.version_info >= (3, 11):
        heavy |= {"anyio", "random", "typing_extensions"}
    user.script(AUDIT, "sitecustomize.py")
    told = user.folder / "imported"
    path = os.pathsep.join([str(user.folder), user.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "TOLD": str(told)}
    editor = Editor(user, await user.start("adapter", piped=True, env=env))
    await editor.client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await editor.client.disconnect()
    await editor.gone()
    imported = set(told.read_text().split())
    assert {"dap_mux", "asyncio", "msgspec"} <= imported, "the audit works"
    assert not heavy & imported


AUDIT = """\
import atexit, os, sys

def tell():
    with open(os.environ["TOLD"], "w") as file:
        print(*{name.partition(".")[0] for name in sys.modules}, file=file)

if "TOLD" in os.environ:
    atexit.register(tell)
"""
