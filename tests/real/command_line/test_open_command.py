"""`dap-mux open`: ranks that are no more, seen by a raw client, commands, editors and a console.

The sources of the report are nowhere on this machine.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from dap_mux.client import DapClient, RequestFailed
from dap_mux.frontends.report.recording import THE_END
from dap_mux.frontends.report.report_file import At, Frame, Printed, Stop, Thread, Variable, packed
from tests.support.clients.live_editor import LiveEditor, live
from tests.support.editors import NvimDapModel, VSCodeModel
from tests.support.processes.commands import LIMIT, Command, User, bodies, listed, threads
from tests.support.reports.sample import PATH, REPORT, RUNNING, STOPS, TEXT, WHY, sample

pytestmark = pytest.mark.real
ATTACH: Final = {"justMyCode": True, "pathMappings": [{"localRoot": "/here", "remoteRoot": "."}]}
HTML: Final = "<img src=x onerror=alert(1)>\x1b[31m"


async def opened(user: User, data: bytes | None = None) -> Command:
    """Serve a report, of its own unless it is given."""
    (user.folder / "report.dapmux").write_bytes(data or sample())
    return await user.start("open", "report.dapmux")


async def attached(command: Command) -> tuple[DapClient, list[int]]:
    """Attach a client; return it with the threads of the four ranks."""
    client = await command.client()
    await client.handshake(ATTACH)
    rows = await listed(client, "state", "stopped", "stopped", "stopped", "exited")
    return client, [row["threadId"] for row in rows]


async def frames(client: DapClient, thread: int) -> list[dict[str, Any]]:
    body = await client.request("stackTrace", {"threadId": thread}, timeout=LIMIT)
    found: list[dict[str, Any]] = body["stackFrames"]
    return found


async def value(client: DapClient, frame: int, expression: str) -> dict[str, Any]:
    asked = {"expression": expression, "frameId": frame, "context": "watch"}
    return await client.request("evaluate", asked, timeout=LIMIT)


async def goes(client: DapClient, command: str, thread: int, *states: str) -> list[int]:
    """Send the recording to another stop, in which the ranks are in these states."""
    await client.request(command, {"threadId": thread}, timeout=LIMIT)
    return [row["threadId"] for row in await listed(client, "state", *states)]


async def test_a_client_sees_stacks_values_and_sources(user: User) -> None:
    client, rows = await attached(await opened(user))
    top, outer = await frames(client, rows[1])
    assert (top["name"], top["line"], outer["name"]) == ("step", 7, "<module>")
    assert top["source"]["path"] == PATH
    reference = top["source"]["sourceReference"]
    source = {"source": top["source"], "sourceReference": reference}
    assert (await client.request("source", source))["content"] == TEXT

    (scope,) = (await client.request("scopes", {"frameId": top["id"]}))["scopes"]
    inside = {"variablesReference": scope["variablesReference"]}
    found = (await client.request("variables", inside))["variables"]
    assert [one["name"] for one in found] == ["n", "loss", "config"]
    assert found[1]["value"].startswith("1.0")  # and which ranks differ
    inside = {"variablesReference": found[2]["variablesReference"]}
    (child,) = (await client.request("variables", inside))["variables"]
    assert (child["name"], child["value"]) == ("'lr'", "0.1")
    for expression, told in {"n": "2", "config['lr']": "0.1", "loss * 2": "2 * 1.0"}.items():
        assert (await value(client, top["id"], expression))["result"] == told
    with pytest.raises(RequestFailed, match=r"'n \+ 1' was not recorded here, .* a live rank"):
        await value(client, top["id"], "n + 1")
    info = await client.request("exceptionInfo", {"threadId": rows[0]})
    assert (info["exceptionId"], info["description"]) == ("ValueError", "loss is nan")
    why = await client.request("why", {})
    assert {key: why[key] for key in WHY} == WHY


async def test_all_ranks_go_through_the_stops_together(user: User) -> None:
    client, rows = await attached(await opened(user))
    rows = await goes(client, "stepBack", rows[1], "stopped", "stopped", "stopped", "running")
    (place, _) = await frames(client, rows[2])
    assert (await value(client, place["id"], "loss"))["result"] == "nan"
    compared = await client.request("compare", {"expression": "loss", "ranks": "0-2"})
    assert {each["value"]: each["ranks"] for each in compared["values"]} == {
        "0.5": "0-1",
        "nan": "2",
    }
    with pytest.raises(RequestFailed, match=r"`why` was not asked at this stop .* code 7"):
        await client.request("why", {})
    await goes(client, "pause", rows[3], *["stopped"] * 4)  # its stack was looked at as it ran
    assert (await frames(client, rows[3]))[0]["line"] == 6

    rows = await goes(client, "reverseContinue", rows[0], *["stopped"] * 4)
    await told(client, "stop 1 of 3")
    assert [(await frames(client, row))[0]["line"] for row in rows] == [5] * 4
    await client.request("stepBack", {"threadId": rows[0]})
    await told(client, "this is the first stop of the recording")
    rows = await goes(client, "next", rows[0], *["stopped"] * 3, "running")
    rows = await goes(client, "continue", rows[0], *["stopped"] * 3, "exited")
    await client.request("continue", {"threadId": rows[0]})
    await told(client, "this is the last stop of the recording")
    await listed(client, "state", *["stopped"] * 3, "exited")
    await goes(client, "stepBack", rows[0], *["stopped"] * 3, "running")  # rank 3 lives again


async def told(client: DapClient, words: str) -> None:
    """Wait until the session has said these words."""

    def said() -> bool:
        return any(words in body["output"] for body in bodies(client, "output"))

    await client.wait_for(said, timeout=LIMIT, what=words)


async def test_what_needs_a_live_rank_is_refused(user: User) -> None:
    client, rows = await attached(await opened(user))
    (top, *_) = await frames(client, rows[1])
    (scope,) = (await client.request("scopes", {"frameId": top["id"]}))["scopes"]
    wanted: dict[str, dict[str, Any]] = {
        "setVariable": {**scope, "name": "n", "value": "7"},
        "setExpression": {"expression": "n", "value": "7", "frameId": top["id"]},
        "evaluate": {"expression": "n = 7", "frameId": top["id"], "context": "repl"},
    }
    for command, arguments in wanted.items():
        with pytest.raises(RequestFailed, match="needs a live rank"):
            await client.request(command, arguments, timeout=LIMIT)
    lines = {"source": {"path": PATH}, "breakpoints": [{"line": 5}]}
    (state,) = (await client.request("setBreakpoints", lines))["breakpoints"]
    assert not state["verified"]
    assert "a breakpoint needs a live rank" in state["message"]


async def test_it_serves_until_it_is_interrupted(user: User) -> None:
    """Whoever leaves, the next finds the same stop; and the other commands find it."""
    command = await opened(user)
    client, rows = await attached(command)
    await goes(client, "stepBack", rows[1], *["stopped"] * 3, "running")
    await client.disconnect()
    states = [
        each["state"] for each in json.loads((await user.does("list", "--json")).out)["ranks"]
    ]
    assert states == ["stopped", "stopped", "stopped", "running"]
    assert "| ⚠ {2}   | nan" in (await user.does("compare", "loss")).out
    shown = (await user.does("stacks")).out
    assert "step  train.py:6\n  └ running; {0-2} stopped" in shown
    failed = await user.does("why")
    assert "was not asked at this stop" in failed.err
    again = await command.client()
    await again.handshake(ATTACH)
    await goes(again, "next", rows[0], *["stopped"] * 3, "exited")
    assert (await user.does("why")).out.startswith("not-joined: rank 3 has not joined")
    user.signal(command.process.pid, signal.SIGINT)
    assert (await command.ends()).code == 0
    assert "the recording is closed" in command.err


async def test_whoever_attaches_is_shown_what_was_printed(user: User) -> None:
    many = Printed("".join(f"step {n}\n" for n in range(1, 1200)), "stderr", "1")
    output = (Printed("gone\n"), many, Printed("a\rb", "telemetry", "0-3"))
    for data, shown in (
        (sample(), ["[0-3] step 0\nlaunched\n"]),
        (
            packed(REPORT, STOPS, output, {}),
            ["".join(f"[1] step {n}\n" for n in range(201, 1200)), "[0-3] a\rb\n"],
        ),
    ):
        client, _ = await attached(await opened(user, data))
        told = [each["output"] for each in bodies(client, "output")]
        assert [text for text in told if not text.startswith("dap-mux: ")] == shown
        await client.close()


async def test_a_job_without_a_stop_is_shown_as_it_ended(user: User) -> None:
    states = {"exited, exit code 0": "0-2", "exited, exit code 7": "3"}
    report = replace(REPORT, states=states, end_block="rank 3: ValueError", why={})
    command = await opened(user, packed(report, [], (), {}))
    client = await command.client()
    await client.handshake(ATTACH)
    rows = await listed(client, "state", *["exited"] * 4)
    assert [row["exitCode"] for row in rows] == [0, 0, 0, 7]
    assert "no rank stopped in it; rank 3: ValueError" in command.err
    assert any(THE_END in each["output"] for each in bodies(client, "output"))
    with pytest.raises(RequestFailed, match="every rank has ended; `dap-mux list` shows how"):
        await client.request("evaluate", {"expression": "loss", "context": "repl"})
    for words in (("stacks",), ("compare", "loss"), ("cast", "all", "p loss")):
        told = await user.does(*words)
        assert "{3}: exited: exit code 7" in told.out + told.err, words
    assert report.end in (await user.does("why")).err
    (user.folder / "words").write_text("list\nbt\nback\nc\nquit\n")
    done = await user.does("console", "-x", "words")
    assert "no stopped ranks" in done.out
    assert "no rank is stopped here" in done.out + done.err


async def test_the_words_of_the_console_that_read(user: User) -> None:
    await (await opened(user)).session()
    script = user.folder / "words"
    script.write_text("attach 1\np loss\npp config\nwhatis loss\nl\nll\nbt\nu\nwhy\nquit\n")
    done = await user.does("console", "-x", "words")
    for words in (
        "1.0",
        "{'lr': 0.1}",
        "<class 'float'>",
        "7 ->",
        "def step(n, scale):",
        WHY["sentence"],
    ):
        assert str(words) in done.out, words


async def test_a_console_in_the_same_terminal_goes_back(user: User) -> None:
    (user.folder / "report.dapmux").write_bytes(sample())
    command = await user.start("open", "report.dapmux", "--console", piped=True)
    assert command.process.stdin is not None
    assert command.process.stdout is not None
    command.process.stdin.write(b"wait 0-2\nback\nwait 0-2 stopped\non 2 p loss\nquit\n")
    told = (await command.process.stdout.read()).decode()
    assert "train.py:6" in told
    assert "\nnan\n" in told, told
    assert (await command.ends()).code == 0


@pytest.mark.parametrize("model", [NvimDapModel, VSCodeModel])
async def test_editors_go_back(user: User, model: Callable[[], Any]) -> None:
    port = (await (await opened(user)).session())["port"]
    async with live(model(), port, ATTACH) as editor:
        await editor.until(lambda: editor.model.capabilities.get("supportsStepBack"), "an offer")
        await editor.until(partial(_shows, editor, 7), "line 7")
        for line in (6, 5):
            asked = {"threadId": editor.model.focus}
            editor.ask("stepBack", asked)
            await editor.until(partial(_shows, editor, line), f"line {line}")


async def test_nvim_dap_shows_the_stack_of_a_rank_that_ran(user: User) -> None:
    """It pauses the row and lets it run on at once: the recording stays where it is."""
    port = (await (await opened(user)).session())["port"]
    model = NvimDapModel()
    async with live(model, port, ATTACH) as editor:
        await editor.until(partial(_shows, editor, 7), "line 7")
        editor.ask("stepBack", {"threadId": model.focus})
        await editor.until(partial(_shows, editor, 6), "line 6")
        await editor.until(lambda: len(model.threads) == 4 and editor.at_rest, "rank 3")
        row = max(model.threads)
        editor.send(model.expand(row))
        await editor.until(lambda: model.frames(row), "its stack")
        await editor.until(lambda: editor.at_rest, "the answer to `continue`")
        assert [frame["line"] for frame in model.frames(row)] == [6, 11]
        assert editor.shown == ["stopped", "stopped", "stopped", "running"]
        editor.ask("stepBack", {"threadId": model.focus})
        await editor.until(partial(_shows, editor, 5), "the first stop")
        assert model.notices == []


async def test_a_hang_is_told_and_a_rank_that_is_paused_runs_again(user: User) -> None:
    """No rank is stopped in it. nvim-dap expands a row by these requests, and moves nobody."""
    title = "not-joined: rank 2 stands"
    hang = Stop(9.0, title, (At("0-3", "running", threads=RUNNING),), why=WHY)
    data = packed(REPORT, [hang, replace(hang, title="after")], (), {})
    client = await (await opened(user, data)).client()
    await client.handshake(ATTACH)
    rows = await listed(client, "state", *["running"] * 4)
    before = [each["output"] for each in bodies(client, "output")]
    assert any("stop 2 of 2" in text and "after" in text for text in before)
    for _ in range(2):
        await client.request("pause", {"threadId": rows[3]["threadId"]})
        (*_, last) = await listed(client, "state", *["stopped"] * 4)
        shown = await frames(client, last["threadId"])
        assert [frame["line"] for frame in shown] == [6, 11]
        await client.request("continue", {"threadId": last["threadId"]})
        await listed(client, "state", *["running"] * 4)
    assert [each["output"] for each in bodies(client, "output")] == before
    await client.request("pause", {"threadId": rows[0]["threadId"]})
    await listed(client, "state", *["stopped"] * 4)
    await client.request("stepBack", {"threadId": rows[0]["threadId"]})
    await told(client, title)
    await listed(client, "state", *["running"] * 4)
    await client.close()


def _shows(editor: LiveEditor, line: int) -> bool:
    return editor.model.arrow is not None and editor.model.arrow[1] == line


async def test_an_editor_opens_a_report_by_itself(user: User) -> None:
    report = user.folder / "report.dapmux"
    report.write_bytes(sample())
    adapter = await user.start("adapter", piped=True)
    client = adapter.editor()
    with pytest.raises(RequestFailed, match="cannot read missing"):
        await client.handshake({"report": "missing"}, launch=True)
    await client.close()
    adapter = await user.start("adapter", piped=True)
    client = adapter.editor()
    await client.handshake({"report": str(report)}, launch=True)
    (row, *_) = await listed(client, "state", *["stopped"] * 3, "exited")
    await goes(client, "stepBack", row["threadId"], *["stopped"] * 3, "running")
    await client.disconnect()
    assert (await adapter.ends()).code == 0


async def test_hostile_texts_are_only_shown(user: User) -> None:
    """Paths that climb are read from the report alone, and no value is evaluated."""
    marker = user.folder / "executed"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    own = (Variable("html", HTML), Variable("code", code), Variable(code, HTML))
    path = str(Path("/nowhere/../../../etc/passwd"))
    thread = Thread(HTML, (Frame(HTML, path, 2**40, own), Frame("f", "../../escape.py", -1)))
    place = At("0-2", "stopped", HTML, code, (thread,), values={code: code})
    stop = Stop(1.0, HTML, (place, At("3", "ended", "exit code 7")))
    texts = {path: "recorded\n", "../../escape.py": "y\n"}
    client, rows = await attached(await opened(user, packed(REPORT, [stop], (), texts)))
    top, _ = await frames(client, rows[0])
    for expression in ("html", "code", code):
        await value(client, top["id"], expression)
    with pytest.raises(RequestFailed, match="needs a live rank"):
        await value(client, top["id"], "eval(code)")
    shown = await user.does("cast", "0", "p html")
    assert "\x1b" not in shown.out
    for words in (("stacks",), ("list",), ("cast", "0", "ll"), ("cast", "0", "w")):
        assert "Traceback" not in (await user.does(*words)).err
    assert not marker.exists()
    assert not (user.folder.parent / "escape.py").exists()
    assert await threads(client, 3)
