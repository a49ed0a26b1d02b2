"""What a `launch` request says of the ranks to start, right and wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dap_mux.pure.errors import UsageError
from dap_mux.rank.environ import REPLAY_AT
from dap_mux.rank.take.rank_file import CALL, Writer
from dap_mux.session.launch_attributes import launch_job, launcher_job
from dap_mux.system.config import Config
from dap_mux.system.programs import module_command
from tests.unit.cli.test_take import CALLED, HEADER


def launch(tmp_path: Path, **attributes: Any) -> dict[str, Any]:
    """The arguments of a `launch` request for a script that is there."""
    (tmp_path / "train.py").touch()
    return {"program": "train.py", "cwd": str(tmp_path), **attributes}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (None, ()),
        ({}, ()),
        (["--steps", 5, "two words"], ("--steps", "5", "two words")),
        ("--steps 5 'two words'", ("--steps", "5", "two words")),
    ],
)
def test_the_programs_own_arguments(tmp_path: Path, args: object, words: tuple[str, ...]) -> None:
    job = launch_job(Config.load(), launch(tmp_path, args=args))
    assert job.command == (str(tmp_path / "train.py"), *words)


def test_null_removes_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "1")
    env = {"OUTER": None, "NUMBER": 3}
    config = Config.load()
    job = launch_job(config, launch(tmp_path, env=env)).environment(0, 29500)
    launcher = [sys.executable, "-m", "spawn"]
    started = launcher_job(config, launch(tmp_path, env=env, launcher=launcher))
    for environment in (job, started.environment(tmp_path)):
        assert "OUTER" not in environment
        assert environment["NUMBER"] == "3"


def test_variables_of_a_file_stand_below_those_of_env(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\n\nexport A=1\nB = 'two words' # why\nC=c # why\nD=a#b\nnonsense\nE=\n"
    )
    arguments = launch(tmp_path, envFile=".env", env={"A": "0"}, gevent=True)
    for job in (
        launch_job(Config.load(), arguments).env,
        launcher_job(Config.load(), {**arguments, "launcher": [sys.executable]}).env,
    ):
        assert {**job, "PATH": None} == {
            "A": "0",
            "B": "two words",
            "C": "c",
            "D": "a#b",
            "E": "",
            "GEVENT_SUPPORT": "True",
            "PATH": None,
        }


@pytest.mark.parametrize("given", [["-X", "dev"], "-X dev"])
def test_options_of_python_come_before_the_rank(tmp_path: Path, given: object) -> None:
    arguments = launch(tmp_path, pythonArgs=given, console="internalConsole")
    command = launch_job(Config.load(), arguments).agent_command(tmp_path / "ready")
    assert command[:5] == [sys.executable, "-X", "dev", *module_command("dap_mux.rank")]
    with pytest.raises(UsageError, match="`pythonArgs` is for ranks without a launcher"):
        launcher_job(Config.load(), {**arguments, "launcher": [sys.executable]})


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"nproc": 0}, "`nproc` must be the number of ranks"),
        ({"nproc": 65_536}, "`nproc` must be the number of ranks"),
        ({"nproc": 100_000_000}, "`nproc` must be the number of ranks"),
        ({"args": {"a": 1}}, "`args` must be a list of strings"),
        ({"args": 5}, "`args` must be a list of strings"),
        ({"args": [None]}, "`args`: None is not a string"),
        ({"args": ["a\0"]}, "`args`: .* contains a NUL"),
        ({"args": "it's"}, "`args` .*: No closing quotation"),
        ({"env": [1]}, "`env` must be an object"),
        ({"env": "A=1"}, "`env` must be an object"),
        ({"env": {"": "x"}}, "`env`: '' is not a valid variable name"),
        ({"env": {"A=B": "x"}}, "`env`: 'A=B' is not a valid variable name"),
        ({"env": {"A": "x\0"}}, "`env.A`: .* contains a NUL"),
        ({"env": {"A": {}}}, "`env.A`: {} is not a string"),
        ({"python": ["python3"]}, "`python`: .* is not a string"),
        ({"module": {"a": 1}}, "`module`: .* is not a string"),
        ({"console": "integratedTerminal"}, "`console` must be 'internalConsole'"),
        ({"sudo": True}, "`sudo`: ranks run as the user of the editor"),
        ({"pythonArgs": [1]}, "`pythonArgs` must be a list of strings"),
        ({"pythonArgs": "it's"}, "`pythonArgs` .*: No closing quotation"),
        ({"envFile": "nowhere.env"}, "`envFile` nowhere.env: .*No such file"),
    ],
)
def test_what_cannot_be_started_is_refused_by_name(
    tmp_path: Path, attributes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        launch_job(Config.load(), launch(tmp_path, **attributes))


def test_a_replay_needs_no_program(tmp_path: Path) -> None:
    """It runs what its file names, in the folder; its Python is here."""
    (tmp_path / "train.py").touch()
    Writer(str(tmp_path / "2.rank"), {**HEADER, "executable": sys.executable}).add(CALL, CALLED)
    arguments = {"replay": "2.rank", "replayAt": "call:1", "cwd": str(tmp_path)}
    job = launch_job(Config.load(), arguments)
    assert (job.command, job.ranks) == (("train.py", "-m", "1"), (2,))
    assert job.variables[REPLAY_AT] == "call:1"
    own = launch_job(Config.load(), launch(tmp_path, replay="2.rank", args=["--x"], replayAt=0))
    assert (own.command[1:], own.variables[REPLAY_AT]) == (("--x",), "0")
    for wrong, message in (
        ({"nproc": 2}, "leave `nproc` out"),
        ({"replay": ["2.rank", "3.rank"]}, r"cannot replay 3\.rank: No such file"),
        ({"replay": "3.rank"}, r"cannot replay 3\.rank: No such file"),
        ({"replayAt": 7}, "cannot stop at 7: the record has calls 1 to 1"),
    ):
        with pytest.raises(UsageError, match=message):
            launch_job(Config.load(), {**arguments, **wrong})
    with pytest.raises(UsageError, match="needs no launcher"):
        launcher_job(Config.load(), {**arguments, "launcher": "torchrun"})
