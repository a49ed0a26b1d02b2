"""What switches on what in a rank: an import that costs nothing, limits, words of variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dap_mux
from dap_mux.rank import api
from dap_mux.rank.debugger_wait import on_timeout_of, timeout_of
from dap_mux.rank.environ import DEFAULT_LIMIT_S, POST_MORTEM, Hold, Place, hold_of
from dap_mux.rank.frameworks import launched
from dap_mux.rank.ready import RENDEZVOUS


def test_importing_the_package_loads_no_debugger() -> None:
    code = (
        "import sys; sys.path.insert(0, '.'); before = set(sys.modules); import dap_mux; "
        "print(*sorted(set(sys.modules) - before))"
    )
    words = [sys.executable, "-S", "-c", code]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["__future__", "dap_mux"]


def test_the_package_has_what_programs_call() -> None:
    assert {dap_mux.listen.__name__, dap_mux.settrace.__name__} == {"listen", "settrace"}
    assert dap_mux.wait_for_client.__module__ == "dap_mux.rank.api"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dap_mux.nothing


@pytest.mark.parametrize(
    ("text", "hold"),
    [
        ("", Hold(7.0, 7.0)),
        ("off", None),
        ("No", None),
        ("on", Hold(DEFAULT_LIMIT_S, DEFAULT_LIMIT_S)),
        ("debugged", Hold(0.0, DEFAULT_LIMIT_S)),
        ("0", Hold(0.0, 0.0)),
        (" 1.5 ", Hold(1.5, 1.5)),
    ],
)
def test_how_long_a_failed_rank_is_held(text: str, hold: Hold | None) -> None:
    assert hold_of({POST_MORTEM: text}, 7.0) == hold


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan"])
def test_nonsense_there_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"{POST_MORTEM}={text}: must be a number of seconds"):
        hold_of({POST_MORTEM: text}, None)


def test_the_limit_of_the_wait() -> None:
    assert timeout_of({}) is None
    assert timeout_of({"DEBUG_TIMEOUT": "600"}) == 600
    with pytest.raises(ValueError, match="DEBUG_TIMEOUT: '-1' is not a number of seconds"):
        timeout_of({"DEBUG_TIMEOUT": "-1"})
    assert on_timeout_of({}) == "exit"
    assert on_timeout_of({"DEBUG_ON_TIMEOUT": "continue"}) == "continue"


def test_without_a_session_there_is_none_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proc of Monarch in a program that nothing of ours has started: it listens by itself."""
    for name in (RENDEZVOUS, "DAP_MUX_DIAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(launched, "become", lambda *_: None)
    assert not launched.joins_session(Place())


def test_the_folder_of_a_launcher_on_another_host_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RENDEZVOUS, str(tmp_path / "there"))
    api._write_record({}, api.Setup(), in_folder=True)
    assert not [*tmp_path.iterdir()]
