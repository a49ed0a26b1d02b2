"""What a `launch` request says of the ranks to start, right and wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dap_mux.config import Config
from dap_mux.errors import UsageError
from dap_mux.session.launch_attributes import launch_job, launcher_job


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


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"nproc": 0}, "`nproc` must be the number of ranks"),
        ({"nproc": 65_536}, "`nproc` must be the number of ranks"),
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
    ],
)
def test_what_cannot_be_started_is_refused_by_name(
    tmp_path: Path, attributes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        launch_job(Config.load(), launch(tmp_path, **attributes))
