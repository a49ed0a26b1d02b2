"""`run --take` and `replay`: what is refused, and what a file of somebody else's cannot start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dap_mux.frontends.cli.entry import parse
from dap_mux.frontends.cli.session_commands import run_options
from dap_mux.frontends.cli.take import replay_options
from dap_mux.pure.errors import UsageError
from dap_mux.rank.environ import REPLAY, REPLAY_AT
from dap_mux.rank.take.rank_file import CALL, Writer
from tests.unit.rank import test_rank_file as rank_file

HEADER: dict[str, Any] = {
    **rank_file.HEADER,
    "argv": ["python", "-u", "train.py", "-m", "1"],
    "program": ["train.py", "-m", "1"],
    "executable": "",
}
CALLED = rank_file.call(1)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()


def replayed(*words: str, at: str = "", **head: Any) -> Any:
    """The options that a file with this head leads to."""
    Writer("2.rank", {**HEADER, **head}).add(CALL, CALLED)
    return replay_options(parse(["replay", *(["--at", at] if at else []), "2.rank", *words]))


def test_the_script_of_this_folder_is_run_with_its_arguments() -> None:
    options = replayed()
    assert options.command == ("train.py", "-m", "1")
    assert (options.world_size, options.only, options.config.python) == (4, (2,), None)
    by_rank = json.dumps({"2": str(Path("2.rank").absolute())})
    assert options.variables == {REPLAY: by_rank, "PYTHONHASHSEED": "0"}


@pytest.mark.parametrize(
    "head",
    [
        {"argv": ["python", "-X", "dev", "-m", "timeit", "-s", "import os; os.abort()"]},
        {"program": [__file__]},
        {"program": ["../../bin/other.py"]},
        {"program": ["gone.py"]},
        {"program": []},
    ],
)
def test_another_is_named_and_not_run(head: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"not in this folder, .*: name yours: dap-mux replay 2"):
        replayed(**head)


def test_a_python_that_others_may_write_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "env" / "bin"
    folder.mkdir(parents=True)
    python = folder / "python"
    python.touch(0o755)
    assert replayed(executable=str(python)).config.python == python
    for path, mode in ((python, 0o755), (folder, 0o755), (folder.parent, 0o755)):
        path.chmod(0o777)
        assert replayed(executable=str(python)).config.python is None
        path.chmod(mode)


def test_a_place_that_the_record_has_not_is_refused() -> None:
    assert replayed(at="call:1").variables[REPLAY_AT] == "call:1"
    with pytest.raises(
        UsageError, match=r"cannot stop at 7: the record has calls 1 to 1, in steps 0 to 0"
    ):
        replayed(at="7")


def test_a_program_that_is_named_counts() -> None:
    Path("other.py").touch()
    assert replayed("--", "other.py", "--x").command == ("other.py", "--x")
    with pytest.raises(UsageError, match=r"no such file: gone\.py"):
        replayed("--", "gone.py")
    with pytest.raises(UsageError, match="a program comes behind `--`"):
        replayed("other.py")
    assert parse(["replay", "2.rank", "--console", "--", "other.py"]).console
    with pytest.raises(UsageError, match=r"cannot replay train\.py: it was not written by"):
        replay_options(parse(["replay", "train.py"]))
    with pytest.raises(UsageError, match=r"cannot replay gone\.rank: No such file"):
        replay_options(parse(["replay", "gone.rank"]))


def test_several_ranks_of_a_job_are_replayed_together() -> None:
    Writer("3.rank", {**HEADER, "rank": 3}).add(CALL, CALLED)
    options = replayed("3.rank", at="call:1@3")
    assert (options.world_size, options.only) == (4, (2, 3))
    assert [*json.loads(options.variables[REPLAY])] == ["2", "3"]
    with pytest.raises(UsageError, match="cannot stop at last@1: no file is of rank 1"):
        replayed("3.rank", at="last@1")
    with pytest.raises(UsageError, match=r"2\.rank is of rank 2, as .*2\.rank is"):
        replayed("./../" + Path.cwd().name + "/2.rank")
    with pytest.raises(UsageError, match="it is of rank 2 of 2"):
        replayed(world=2)
    Writer("3.rank", {**HEADER, "rank": 3, "world": 8}).add(CALL, CALLED)
    with pytest.raises(UsageError, match=r"2\.rank and .*3\.rank are not of the same job"):
        replayed("3.rank")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--take", "x"], "--take x: must be ranks"),
        (["--take", "0-99"], "must be 1 to 64 ranks"),
        (["--take", "2", "--to", "two.zip"], r"must end in \.rank"),
        (["--take", "2", "--to", "no/such/2.rank"], "there is no folder"),
        (["--take", "2", "--take-limit", "0"], "must be bytes, for example 500M or 2G"),
    ],
)
def test_wrong_arguments_of_take(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_options(parse(["run", *words, "train.py"]))


def test_what_ranks_are_told() -> None:
    words = [
        "run",
        "--take",
        "2,4-5",
        "--to",
        "a.rank",
        "--take-limit",
        "2K",
        "--take-data",
        "train.py",
    ]
    variables = run_options(parse(words)).variables
    assert [*variables.values()] == ["2,4,5", str(Path("a.rank").absolute()), "0", "1", "2048"]
