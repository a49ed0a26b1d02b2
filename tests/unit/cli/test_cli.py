"""The command line: names, words, exit codes, and sentences instead of tracebacks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dap_mux import __version__
from dap_mux.frontends.cli import entry, listings, main
from dap_mux.frontends.cli.commands import BY_NAME, COMMANDS
from dap_mux.frontends.cli.entry import parse
from dap_mux.frontends.cli.execution import load_config
from dap_mux.frontends.cli.listings import columns
from dap_mux.frontends.cli.session_commands import run_options
from dap_mux.frontends.console.screen import PlainScreen
from dap_mux.pure.errors import DapMuxError, NothingToConnect, PeerFault, Refused, UsageError
from dap_mux.session.job import entry_line
from dap_mux.system.config import OPTIONS, Address, Config
from dap_mux.system.session_files import SessionFile
from tests.support.clients.scripted_server import ScriptedServer, list_row


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, a home and a runtime directory where nobody has configured anything."""
    for name in [name for name in os.environ if name.startswith("DAP_MUX_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    return tmp_path


def run_words(*words: str) -> Namespace:
    """The namespace of a `run` command."""
    return parse(["run", *words])


# Names


def test_the_commands_of_the_design_exist() -> None:
    design = (
        "run record replay save attach open rerun console list ls cast stacks compare why diverge"
        " adapter lsp mcp doctor config sessions completion help"
    )
    assert set(BY_NAME) == set(design.split())


@pytest.mark.parametrize(
    "words", [[], ["--help"], *([command.name, "--help"] for command in COMMANDS)]
)
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    assert "dap-mux" in capsys.readouterr().out


@pytest.mark.parametrize(
    "start", [["-m", "dap_mux"], ["-c", "import dap_mux.frontends.cli as c; c.main()"]]
)
def test_version_as_a_process(start: list[str]) -> None:
    words = [sys.executable, *start, "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"dap-mux {__version__}\n"


@pytest.mark.parametrize("words", [["list", "--no-such"], ["attach"], ["config"]])
def test_wrong_words_are_usage_errors(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


# run: whose words are whose


@pytest.mark.parametrize(
    ("words", "command", "size"),
    [
        ("train.py", ("train.py",), 1),
        ("-n 4 train.py", ("train.py",), 4),
        ("-n 4 train.py -n 2 -v --mesh x", ("train.py", "-n", "2", "-v", "--mesh", "x"), 4),
        ("-n 4 train.py -- -x -- y", ("train.py", "--", "-x", "--", "y"), 4),
        ("-n 4 --no-wait train.py -m x", ("train.py", "-m", "x"), 4),
        ("--headless -n 2 -m train --lr 3", ("-m", "train", "--lr", "3"), 2),
        ("-n 2 -m train -- --lr", ("-m", "train", "--", "--lr"), 2),
        ("-n 2 -m pkg.train -m -v train.py", ("-m", "pkg.train", "-m", "-v", "train.py"), 2),
        ("--base-port 6000 --listen 0 --log-dir logs -vv train.py 1", ("train.py", "1"), 1),
    ],
)
def test_run_takes_the_jobs_words_as_they_are(
    words: str, command: tuple[str, ...], size: int
) -> None:
    order = run_options(run_words(*words.split()))
    assert (order.command, order.world_size) == (command, size)


def test_run_flags_reach_the_configuration(quiet_place: Path) -> None:
    words = "-n 8 --base-port 7000 --listen 0.0.0.0:6000 --mesh dp=2,tp=4 --log-dir logs --no-wait"
    config = run_options(run_words(*words.split(), "-vv", "train.py")).config
    assert (config.base_port, config.listen) == (7000, Address("0.0.0.0", 6000))
    assert (str(config.mesh), config.log_dir) == ("dp=2,tp=4", quiet_place / "logs")
    assert (config.wait, config.verbosity) == (False, 2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "run needs a script or -m MODULE, for example: dap-mux run -n 4 train.py\n"),
        ("-m", "run needs a script or -m MODULE"),
        ("-n 0 train.py", "-n 0: the number of ranks must be an integer from 1 to 65535\n"),
        ("-n four train.py", "-n four: the number of ranks"),
        ("missing.py", "no such file: missing.py; to run a module, use -m\n"),
        ("-n 2 --mesh dp=2,tp=2 train.py", "mesh dp=2,tp=2 has 4 ranks, but -n is 2\n"),
        ("--why-after=soon train.py", "--why-after soon: must be"),
        ("--why-after=0 train.py", "--why-after 0: must be"),
        ("--why-after=-1 train.py", "--why-after -1: must be"),
        ("-n 4 -- torchrun train.py", "-n 4: only for scripts and modules; the launcher"),
        ("--listen nowhere train.py", "listen = 'nowhere' (flag --listen): allowed: PORT"),
    ],
)
def test_run_mistakes_are_told(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words.split()]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"dap-mux: {sentence}")
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_attach_takes_endpoints_and_flags() -> None:
    args = parse("attach node1:5678-5681 b=node2:5678+4 @ranks.json --mesh dp=2,tp=4".split())
    assert args.endpoints == ["node1:5678-5681", "b=node2:5678+4", "@ranks.json"]
    assert str(load_config(args).mesh) == "dp=2,tp=4"


# Failures


@pytest.mark.parametrize(
    ("error", "plain", "in_run"),
    [
        (UsageError("x"), 2, 2),
        (NothingToConnect("x"), 3, 125),
        (Refused("x"), 4, 125),
        (PeerFault("x"), 1, 125),
        (DapMuxError("x"), 1, 125),
        (OSError("x"), 1, 125),
        (ValueError("x"), 1, 125),
    ],
)
def test_exit_codes(error: Exception, plain: int, in_run: int) -> None:
    assert entry.exit_code(error, BY_NAME["list"]) == plain
    assert entry.exit_code(error, BY_NAME["run"]) == in_run


def test_an_error_inside_groups_is_found() -> None:
    class Group(Exception):  # ExceptionGroup came with Python 3.11
        exceptions: tuple[Exception, ...] = ()

    inner, outer = Group(), Group()
    error = Refused("no")
    inner.exceptions, outer.exceptions = (error,), (inner,)
    assert entry.innermost(outer) is error


def test_a_bad_configuration_file_is_a_sentence(
    quiet_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (quiet_place / "pyproject.toml").write_text("[tool.dap-mux]\nview = 3")
    assert main(["config", "show"]) == 2
    assert capsys.readouterr().err == (
        f"dap-mux: view = 3 ({quiet_place}/pyproject.toml [tool.dap-mux]):"
        " allowed: one of auto, ranks, classes\n"
    )


def test_a_reader_that_leaves_is_no_failure_worth_words() -> None:
    words = [sys.executable, "-m", "dap_mux", "config", "show"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_importing_the_command_line_loads_nothing_slow() -> None:
    slow = {"anyio", "asyncio", "click", "debugpy", "mcp", "numpy", "pygls", "rich", "typer"}
    slow |= {"prompt_toolkit", "shtab"}
    code = "import dap_mux.frontends.cli, sys\nfor name in sys.modules: print(name.split('.')[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert slow.isdisjoint(done.stdout.split())


# config show, sessions


def test_config_show_says_where_each_value_came_from(
    quiet_place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (quiet_place / "pyproject.toml").write_text("[tool.dap-mux]\nstep-grace = '1s'\nsettle = 1")
    monkeypatch.setenv("DAP_MUX_SETTLE", "80ms")
    assert main(["config", "show", "--json", "--view", "classes"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["step_grace"]["value"] == 1
    assert "pyproject.toml" in shown["step_grace"]["origin"]
    assert shown["settle"] == {"value": 0.08, "origin": "variable DAP_MUX_SETTLE"}
    assert shown["view"] == {"value": "classes", "origin": "flag --view"}
    assert shown["listen"] == {"value": "127.0.0.1:5677", "origin": "default"}
    assert main(["config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["settle", "0.08", "variable", "DAP_MUX_SETTLE"] in [line.split() for line in lines]


def test_config_schema_knows_every_option(
    quiet_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "schema"]) == 0
    checked = Draft202012Validator(json.loads(capsys.readouterr().out))
    options = {option.name.replace("_", "-"): option for option in OPTIONS}
    defaults = {
        name: option.kind.show(option.default)
        for name, option in options.items()
        if option.default is not None
    }
    checked.validate({**defaults, "listen": 5677, "mesh": "dp=2", "scope": "class"})
    for wrong in ({"lisen": 1}, {"wait": "perhaps"}, {"scope": "none"}, {"mesh": ["dp"]}):
        assert not checked.is_valid(wrong)


def test_sessions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    session = SessionFile("127.0.0.1", 5677, token="secret", groups=("a", "b"))
    session.write()
    assert main(["sessions", "--json"]) == 0
    [shown] = json.loads(capsys.readouterr().out)
    assert (shown["session"], shown["groups"]) == ("127.0.0.1:5677", ["a", "b"])
    assert "token" not in shown
    assert main(["sessions"]) == 0
    assert ["127.0.0.1:5677", str(os.getpid()), "a,b"] == capsys.readouterr().out.split()[4:7]


# list


BODY = {
    "ranks": [
        list_row(0, host="node1", coords={"dp": 0, "tp": 1}, exitCode=7, state="exited"),
        list_row(1, host="node1", state="stopped", reason="breakpoint", function="step\x1b[2J")
        | {"path": "/src/train.py", "line": 41},
    ],
    "counts": {"exited": 1, "stopped": 1, "running": 0},
}


@asynccontextmanager
async def serving(answers: dict[str, Any]) -> AsyncIterator[tuple[SessionFile, list[Any]]]:
    """A peer that answers each DAP command as told (a text is a refusal); and what it heard."""
    server = ScriptedServer()
    server.answers(answers)
    async with server.listening() as port:
        yield SessionFile("127.0.0.1", port, pid=0), server.received


async def test_list_asks_as_an_observer_and_no_more() -> None:
    async with serving({"list": BODY}) as (session, heard):
        assert await listings.fetch(session, "0-3", Config.load()) == BODY
    assert [one["command"] for one in heard] == ["initialize", "attach", "list"]
    assert [one["arguments"] for one in heard[1:]] == [{"role": "observer"}, {"ranks": "0-3"}]


async def test_list_passes_a_refusal_on() -> None:
    async with serving({"list": "there is no rank 9"}) as (session, _):
        with pytest.raises(DapMuxError, match="there is no rank 9"):
            await listings.fetch(session, "9", Config.load())


async def test_list_as_a_process() -> None:
    async with serving({"list": BODY}) as (session, _):
        words = ("-m", "dap_mux", "list", session.address, "--json")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE
        )
        out, _err = await process.communicate()
    assert (process.returncode, json.loads(out)) == (0, BODY)


def test_list_where_nobody_listens(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", f"127.0.0.1:{free_port}"]) == 3
    said = capsys.readouterr().err
    assert f"cannot connect to 127.0.0.1:{free_port}" in said
    assert "`dap-mux sessions` lists the sessions" in said


@pytest.mark.parametrize(
    ("words", "session", "rest"),
    [
        ("", None, ""),
        ("127.0.0.1:5677", "127.0.0.1:5677", ""),
        ("[::1]:5677 0-3", "[::1]:5677", "0-3"),
        ("/run/user/7/dap-mux/42.json full", "/run/user/7/dap-mux/42.json", "full"),
        ("0-3,7", None, "0-3,7"),
        ("ranks(1:10:2) classes", None, "ranks(1:10:2) classes"),
        ("trainer:3", None, "trainer:3"),
        ("trainer:0-3", None, "trainer:0-3"),
        ("stopped - 3", None, "stopped - 3"),
    ],
)
def test_session_or_ranks(words: str, session: str | None, rest: str) -> None:
    assert listings.split_session(words.split()) == (session, rest.split())


def shown(body: dict[str, Any], how: str = "") -> list[str]:
    """What `list` prints, the lines of the grid left out."""
    text: list[str] = []
    listings.show(PlainScreen(text.append), body, how)
    return [line for line in "".join(text).splitlines() if not line.startswith("+")]


def test_the_table_of_ranks() -> None:
    head, exited, stopped, last = shown(BODY)
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        *("Actor Name", "Rank", "Coords", "Hostname", "Function", "Line No.", "State", "Reason"),
    ]
    assert [cell.strip() for cell in exited.strip("|").split("|")] == [
        *("job", "0", "{'dp': 0, 'tp': 1}", "node1", "", "", "exited", "exit code 7"),
    ]
    assert "| step\\x1b[2J |" in stopped, "no control character reaches the terminal"
    assert last == "2 ranks: 1 exited, 1 stopped"
    assert shown({"ranks": [], "counts": {}}) == ["no ranks"]


def test_workers_stand_behind_their_ranks() -> None:
    ranks = [list_row(0), list_row(0, worker=1), list_row(1), list_row(1, worker=1)]
    lines = shown({"ranks": ranks, "counts": {"running": 4}})
    assert [line.split("|")[2].strip() for line in lines[1:5]] == ["0", "0/1", "1", "1/1"]
    assert lines[-1] == "2 ranks and 2 workers: 4 running"


def test_ranks_at_one_place_are_one_row() -> None:
    ranks = [list_row(number, state="stopped", line=1 + (number == 7)) for number in range(40)]
    body = {"ranks": ranks, "counts": {"stopped": 40}}
    assert [line.split("|")[2].strip() for line in shown(body)[1:3]] == ["0-6,8-39", "7"]
    assert len(shown(body, "full")) == 42
    assert shown({**body, "ranks": ranks[:32]}, "classes")[2].split("|")[3].strip() == "1"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("", 0),
        ("import os", 1),
        ('"""Doc."""\n# c\nfrom __future__ import annotations\n\nx = 1', 5),
        ("@deco\ndef f(): pass", 1),
        ("def broken(", 0),
    ],
)
def test_where_a_console_stops_first(quiet_place: Path, source: str, line: int) -> None:
    (quiet_place / "train.py").write_text(source)
    expected = {str(quiet_place / "train.py"): line} if line else {}
    assert entry_line(("train.py", "--lr", "3")) == expected
    assert entry_line(("-m", "train")) == expected
    assert entry_line(("-m", "no.such.module")) == {}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["cast", "0-3"], 2, "a command must follow the ranks"),
        (["cast", "ranks(0:4", "n"], 2, "dap-mux: "),
        (["cast", "0", "n", "--timeout", "0"], 2, "--timeout 0: must be greater than 0 seconds"),
        (["compare", "x", "--tolerance", "-1"], 2, "--tolerance -1: must be a number of 0 or more"),
        (["compare", "x", "--ranks", "0-"], 2, "dap-mux: "),
        (["list", "ranks(0:4"], 2, "dap-mux: "),
        (["list"], 3, "start one with `dap-mux run`"),
        (["cast", "0", "n"], 3, "start one with `dap-mux run`"),
        (["compare", "x"], 3, "start one with `dap-mux run`"),
        (["console"], 3, "start one with `dap-mux run`"),
        (["doctor", "nonsense"], 2, "an endpoint looks like"),
        (["doctor", "no-such.json"], 3, "there is no session file"),
        (["doctor", "pid:²"], 2, "write pid:1234"),
        (["doctor", "pid:99999999999999999999"], 2, "write pid:1234"),
        (["doctor", "--file", "no-such-file.py"], 2, "there is no such file"),
        (["attach", "=localhost:1"], 2, "the name of a group before `=`"),
        (["attach", "localhost"], 2, "'localhost': a port is missing"),
        (["attach", "@missing.json"], 2, "cannot read the ranks file missing.json"),
        (["attach", ":5678", "--mesh", "dp=0"], 2, "mesh = 'dp=0' (flag --mesh)"),
        (
            ["attach", "a=:5678", "b=:5679", "--mesh", "dp=2"],
            2,
            "mesh dp=2: there are several groups (a, b), not job",
        ),
        (["attach", ":5678", "--listen", "nowhere"], 2, "listen = 'nowhere' (flag --listen)"),
        (["attach", ":5678", "--view", "pretty"], 2, "one of auto, ranks, classes"),
        (["stacks", "ssh:node1:5678"], 2, "name a session, processes (pid:4711,4712), or machines"),
        (["stacks", "pid:1", "0-3"], 2, "name either a session or endpoints"),
        (["stacks", "pid:x"], 2, "not a list of process ids"),
        (["why", "pid:999999999"], 3, "no process 999999999"),
        (["open", "missing"], 2, "cannot read missing"),
        (["open", "/dev/zero"], 2, "not a regular file"),
        (["record"], 2, "needs a launcher behind --"),
        (["record", "--break", "train.py", "--", "python"], 2, "expected FILE:LINE"),
        (["record", "--break", "gone.py:3", "--", "python"], 2, "no file gone.py here"),
        (["record", "--on-hang", "soon", "--", "python"], 2, "must be a number of seconds"),
        (["record", "--to", "gone/a.dapmux", "--", "python"], 2, "there is no such folder"),
        (["record", "--to", "a.html", "--", "python"], 2, "the page gets that name"),
        (["record", "--plan", "plan.toml", "--", "python"], 2, "plan.toml: Expected `array`"),
        (["record", "--plan", "gone.toml", "--", "python"], 2, "gone.toml cannot be read"),
        (["save", "gone/a.dapmux"], 2, "there is no such folder"),
        (["console", "127.0.0.1:5677", "--serve", "0.0.0.0:9"], 4, "refused to serve consoles on"),
        (["console", "127.0.0.1:5677", "--serve", "x"], 2, "--serve 'x': expected [HOST:]PORT"),
    ],
)
def test_mistakes_are_explained_before_anything_starts(
    words: list[str],
    code: int,
    sentence: str,
    quiet_place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (quiet_place / "plan.toml").write_text("break = 3\n")
    before = sorted(quiet_place.iterdir())
    assert main(words) == code
    assert sorted(quiet_place.iterdir()) == before
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""
    assert said.err.count("\n") in (1, 3)  # a mistake in a rank set is pointed at below it


def test_columns_and_control_characters() -> None:
    assert columns(("A", "B"), [("x\ny", None), (3, None)]) == "A\nx\\ny\n3"
