"""Breakpoints that ranks cannot set: shown where they are, and mended in launch.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsprotocol import types

from dap_mux.client import DapClient
from tests.support.clients.lsp_client import CAPABILITIES, editor, replaced
from tests.support.processes.commands import LIMIT, Command, User, line_of, listed, user
from tests.support.processes.run_command import run_words

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM = """\
import time

number = 0
while True:
    time.sleep(0.01)
    number += 1  # here
"""
LAUNCH = """\
{
    // the cluster
    "configurations": [
        {
            "name": "Cluster", "type": "debugpy", "request": "attach",
            "connect": { "host": "localhost", "port": 1 } // by tunnel
        }
    ]
}
"""


class Laptop:
    """The user's folder: only the editor knows the program's text there."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "laptop"
        self.folder.mkdir()
        self.train = str(self.folder / "train.py")
        self.launch = self.folder / ".vscode" / "launch.json"

    def configure(self, text: str = LAUNCH, encoding: str = "utf-8") -> None:
        """Write a launch.json."""
        self.launch.parent.mkdir()
        self.launch.write_text(text, encoding)

    def missing(self, user: User) -> str:
        """What is said in the end: ranks answer one after another, and propose later than that."""
        entry = {"localRoot": str(self.folder), "remoteRoot": str(user.folder)}
        added = f"add {json.dumps(entry)} to pathMappings"
        return f"breakpoint: file missing on ranks 0-1: {self.train}; {added}"


async def job(user: User, laptop: Laptop) -> tuple[Command, str, DapClient]:
    """A job whose program lies elsewhere, and a debugger with a breakpoint on the laptop."""
    there = user.script(PROGRAM)
    run = await user.start(*run_words(there, n=2))
    client = await run.client()
    lines = {laptop.train: [line_of(there, "here")]}
    await client.handshake({"justMyCode": False}, breakpoints=lines, timeout=LIMIT)
    return run, there, client


async def test_a_missing_mapping_is_told_and_written(user: User, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    laptop.configure()
    async with editor(user, folder=laptop.folder) as shown:
        uri = shown.open(laptop.train, PROGRAM)
        assert await shown.hints(uri) == {}  # the text is known before there are problems in it
        run, there, client = await job(user, laptop)
        problem = await shown.problem(uri, laptop.missing(user))
        assert problem.message == laptop.missing(user)
        line = line_of(there, "here") - 1
        assert (problem.range.start, problem.range.end) == (
            types.Position(line, 4),
            types.Position(line, 23),
        )
        tidying = [types.CodeActionKind.SourceOrganizeImports]
        assert await shown.actions(uri, problem, tidying) == []
        [action] = await shown.actions(uri, problem)
        assert action.title == (f"Add path mapping to {user.folder} to 'Cluster' in launch.json")
        assert action.command is not None
        await shown.execute(action.command)
        await shown.message("was added to 'Cluster' in launch.json. It takes effect at")
        assert action.edit is not None
        assert action.edit.changes is not None
        [(changed, edits)] = action.edit.changes.items()
        assert changed == laptop.launch.as_uri()
        written = replaced(LAUNCH, edits)
        entry = {"localRoot": "${workspaceFolder}", "remoteRoot": str(user.folder)}
        assert written == LAUNCH.replace(
            "} // by tunnel",
            f'}}, // by tunnel\n            "pathMappings": [{json.dumps(entry)}]',
        )

        await client.disconnect(timeout=LIMIT)
        await shown.no_problem(uri)
        again = await run.client()
        arguments = {"pathMappings": [entry], "cwd": str(laptop.folder), "justMyCode": False}
        breakpoints = {laptop.train: [line + 1]}
        await again.handshake(arguments, breakpoints=breakpoints, timeout=LIMIT)
        await listed(again, "line", line + 1, line + 1)
        await shown.until_hints(uri, {line + 1: "● 0-1"})
        # Problems are told file by file in their order: behind this one all is said of the other.
        wrong = {"source": {"path": str(laptop.folder / "wrong.py")}, "breakpoints": [{"line": 1}]}
        await again.request("setBreakpoints", wrong, timeout=LIMIT)
        behind = (laptop.folder / "wrong.py").as_uri()
        await shown.problem(behind, f"missing on ranks 0-1: {user.folder / 'wrong.py'}")
        assert shown.problems[uri] == []
    run.process.terminate()


@pytest.mark.heavy
async def test_without_a_launch_json_one_is_offered_to_who_can_create_it(
    user: User, tmp_path: Path
) -> None:
    laptop = Laptop(tmp_path)
    run, _, _ = await job(user, laptop)
    assert CAPABILITIES.workspace is not None
    creating = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(
                document_changes=True,
                resource_operations=[types.ResourceOperationKind.Create],
            )
        )
    )
    for capabilities, count in ((creating, 1), (CAPABILITIES, 0)):
        async with editor(user, folder=laptop.folder, capabilities=capabilities) as shown:
            uri = shown.open(laptop.train, PROGRAM)
            problem = await shown.problem(uri, laptop.missing(user))
            actions = await shown.actions(uri, problem)
            assert len(actions) == count
            for action in actions:
                assert action.edit is not None
                assert action.edit.document_changes is not None
                created, filled = action.edit.document_changes
                assert isinstance(created, types.CreateFile)
                assert isinstance(filled, types.TextDocumentEdit)
                [edit] = filled.edits
                assert isinstance(edit, types.TextEdit)
                [one] = json.loads(edit.new_text)["configurations"]
                assert one["connect"]["port"] == (await run.session())["port"]
    run.process.terminate()


async def test_rank_sets_while_they_are_typed(user: User, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    laptop.configure()
    run, there, client = await job(user, laptop)
    await client.request("groups", {"define": {"name": "slow", "ranks": "1"}}, timeout=LIMIT)
    text = LAUNCH.replace("// by tunnel", ', "pathMappings": [\n{ "ranks": "0 | @" }]')
    async with editor(user, folder=laptop.folder) as shown:
        python = shown.open(there)
        problem = await shown.problem(Path(laptop.train).as_uri(), "file missing")
        assert problem.severity is types.DiagnosticSeverity.Warning
        uri = shown.open(laptop.launch, text)
        row = text.splitlines().index('{ "ranks": "0 | @" }]') + 1
        wrong = await shown.problem(uri, "")
        assert wrong.severity is types.DiagnosticSeverity.Error
        assert wrong.range.start.line == row - 1
        column = text.splitlines()[row - 1].index("@")
        assert wrong.range.start.character == column
        await shown.until_completions(uri, row, column + 2, ["@slow"])
        shown.rewrite(uri, text.replace("@", "@slow"))
        await shown.no_problem(uri)
        assert await shown.completions(python, 1, 1) == []
    run.process.terminate()


async def test_of_several_configurations_that_of_the_session(user: User, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    run, _, _ = await job(user, laptop)
    port = (await run.session())["port"]
    attach = {"type": "dap-mux", "request": "attach"}
    launch = {"type": "dap-mux", "request": "launch", "name": "Ranks", "program": "train.py"}
    several = [
        {**attach, "name": "Other cluster", "connect": {"host": "localhost", "port": 1}},
        launch,
        {**attach, "name": "This cluster", "connect": {"host": "localhost", "port": port}},
    ]
    laptop.configure(json.dumps({"configurations": several}))
    async with editor(user, folder=laptop.folder) as shown:
        uri = shown.open(laptop.train, PROGRAM)
        problem = await shown.problem(uri, laptop.missing(user))
        for name, configuration in (("This cluster", None), ("Ranks", "Ranks")):
            shown.configure(session=None, configuration=configuration)
            [action] = await shown.actions(uri, problem)
            assert f"to '{name}' in launch.json" in action.title
            assert action.is_preferred
    run.process.terminate()


async def test_a_launch_json_in_another_encoding_says_so(user: User, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    text = LAUNCH.replace("the cluster", "für uns")
    laptop.configure(text, "latin-1")
    run, _, _ = await job(user, laptop)
    async with editor(user, folder=laptop.folder) as shown:
        uri, launch = shown.open(laptop.train, PROGRAM), laptop.launch.as_uri()
        problem = await shown.problem(uri, laptop.missing(user))
        wrong = await shown.problem(launch, "is not encoded in UTF-8 (line 2)")
        assert (wrong.severity, wrong.range.start.line) == (types.DiagnosticSeverity.Warning, 1)
        assert "save it as UTF-8" in wrong.message
        assert await shown.actions(uri, problem) == []
        shown.open(laptop.launch, text)  # an editor may know what it is
        shown.save(laptop.launch, text)
        await shown.no_problem(launch)
        assert len(await shown.actions(uri, problem)) == 1
    run.process.terminate()


async def test_who_opens_a_launch_json_in_another_encoding_is_told(
    user: User, tmp_path: Path
) -> None:
    laptop = Laptop(tmp_path)
    laptop.configure(LAUNCH, "utf-16")
    async with editor(user, folder=laptop.folder) as shown:
        uri = shown.open(laptop.launch, LAUNCH)
        await shown.problem(uri, "is encoded in UTF-16")
        document = types.TextDocumentIdentifier(uri)
        shown.text_document_did_close(types.DidCloseTextDocumentParams(document))
        await shown.no_problem(uri)


def big_launch_json() -> str:
    """Some megabytes, and at the end a mistake."""
    mapping = {"localRoot": "/a", "remoteRoot": "/b", "ranks": "0-3"}
    entries = [mapping] * 40_000 + [{**mapping, "ranks": "stoped"}]
    one = {"name": "Big", "type": "dap-mux", "request": "attach", "pathMappings": entries}
    return json.dumps({"configurations": [one]}, indent=2)


@pytest.mark.slow
@pytest.mark.heavy
async def test_a_big_launch_json_holds_up_nothing(user: User, tmp_path: Path) -> None:
    """Other requests are answered before it has been read: as it is opened, and as it is typed."""
    laptop = Laptop(tmp_path)
    text = big_launch_json()
    assert len(text) > 4_000_000
    async with editor(user, folder=laptop.folder) as shown:
        python = shown.open(laptop.train, PROGRAM)
        uri = shown.open(laptop.launch, text)
        assert await shown.hints(python) == {}
        assert uri not in shown.problems
        for _ in range(5):
            shown.insert(uri, 1, " ")
            assert await shown.hints(python) == {}
            assert uri not in shown.problems
        wrong = await shown.problem(uri, "did you mean stopped?")
        assert wrong.range.start.line == text[: text.index("stoped")].count("\n")
