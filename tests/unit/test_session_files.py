"""Session files: private, whole, and only those of sessions that still run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from dap_mux.pure.errors import NothingToConnect, Refused, UsageError
from dap_mux.system.procfs import start_time
from dap_mux.system.session_files import SessionFile, find, running, session_folder

TOKEN = "a secret"
KEYS = {
    "version",
    "pid",
    "host",
    "port",
    "unix",
    "token",
    "groups",
    "started",
    "namespace",
    "entry",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session folder that nobody has made yet."""
    return tmp_path / "run" / "dap-mux"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that runs until it is told otherwise."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_session_is_found_whole_and_private(folder: Path) -> None:
    session = SessionFile("127.0.0.1", 5677, token=TOKEN, groups=("trainer", "eval"))
    before = os.umask(0)
    try:
        path = session.write(folder)
    finally:
        os.umask(before)
    assert (mode(folder), mode(path)) == (0o700, 0o600)
    assert path == folder / f"{os.getpid()}.json"
    assert set(json.loads(path.read_text())) == KEYS
    assert [replace(each, started=0.0) for each in running(folder)] == [session]
    assert [child.name for child in folder.iterdir()] == [path.name]
    assert TOKEN not in repr(session)


def test_a_removed_session_is_gone_and_may_be_removed_again(folder: Path) -> None:
    session = SessionFile("127.0.0.1", 5677)
    session.write(folder)
    session.remove(folder)
    session.remove(folder)
    assert running(folder) == []


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644])
def test_a_session_file_that_others_may_read_is_refused(folder: Path, mode: int) -> None:
    path = SessionFile("127.0.0.1", 5677, token=TOKEN).write(folder)
    path.chmod(mode)
    for word in (None, str(path), "127.0.0.1:5677"):
        with pytest.raises(Refused, match="other users can read") as caught:
            find(word, folder)
        assert TOKEN not in str(caught.value)


def test_the_file_of_a_dead_session_harms_nobody(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path = SessionFile("127.0.0.1", 5677, pid=sleeper.pid, token=TOKEN).write(folder)
    path.chmod(0o644)
    sleeper.kill()
    sleeper.wait()
    assert running(folder) == []


def test_a_folder_that_others_could_enter_is_closed(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o755)
    SessionFile("127.0.0.1", 5677).write(folder)
    assert mode(folder) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="not your own folder"):
        SessionFile("127.0.0.1", 5677).write(folder)
    with pytest.raises(Refused, match="not your own folder"):
        running(folder)


def test_another_users_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    with pytest.raises(Refused, match="set XDG_RUNTIME_DIR"):
        SessionFile("127.0.0.1", 5677).write(folder)


def test_a_killed_session_is_passed_over(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    SessionFile("127.0.0.1", 5677, pid=sleeper.pid).write(folder)
    assert [session.pid for session in running(folder)] == [sleeper.pid]
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert running(folder) == [], "a zombie"
    sleeper.wait()
    assert running(folder) == [], "gone"


def test_the_file_of_a_killed_session_is_removed_by_a_look_and_by_the_next_session(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    killed = SessionFile("127.0.0.1", 5677, pid=sleeper.pid)
    started = start_time(sleeper.pid)
    assert started is not None
    left = killed.write(folder)
    assert running(folder)
    assert left.exists()
    sleeper.kill()
    sleeper.wait()
    running(folder)
    assert not left.exists()
    left = replace(killed, started=started).write(folder)
    mine = SessionFile("127.0.0.1", 5678).write(folder)
    assert list(folder.iterdir()) == [mine]
    assert not left.exists()


def test_the_file_of_a_process_that_cannot_be_seen_from_here_stays(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """In another container, which shares the folder."""
    elsewhere = SessionFile("127.0.0.1", 5677, pid=sleeper.pid, namespace="pid:[1]").write(folder)
    sleeper.kill()
    sleeper.wait()
    assert running(folder) == []
    assert elsewhere.exists()


def test_another_process_of_the_same_number_is_no_session(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    start = start_time(sleeper.pid)
    assert start is not None
    SessionFile("127.0.0.1", 5677, pid=sleeper.pid, started=start - 60).write(folder)
    assert running(folder) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"version": 1}', "null", '{"version": 99, "pid": 1}']
)
def test_a_broken_file_harms_nobody(folder: Path, text: str) -> None:
    SessionFile("127.0.0.1", 5677).write(folder)
    (folder / "1.json").write_text(text)
    assert len(running(folder)) == 1


def test_the_only_session_is_found_without_a_word(folder: Path) -> None:
    SessionFile("127.0.0.1", 5677).write(folder)
    assert find(None, folder).address == "127.0.0.1:5677"


def test_no_session_says_what_helps(folder: Path) -> None:
    with pytest.raises(NothingToConnect, match="start one with `dap-mux run`"):
        find(None, folder)


def test_several_sessions_are_named(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    SessionFile("127.0.0.1", 5677).write(folder)
    SessionFile("::1", 5700, pid=sleeper.pid).write(folder)
    with pytest.raises(NothingToConnect) as caught:
        find(None, folder)
    assert "127.0.0.1:5677" in str(caught.value)
    assert "[::1]:5700" in str(caught.value)
    assert find("[::1]:5700", folder).pid == sleeper.pid


def test_an_address_brings_the_token_of_its_file_along(folder: Path) -> None:
    SessionFile("127.0.0.1", 5677, token=TOKEN).write(folder)
    assert find("127.0.0.1:5677", folder).token == TOKEN
    assert find("localhost:5677", folder).token == TOKEN, "as launch.json says it"
    assert find("localhost:5678", folder).pid == 0
    elsewhere = find("login1:5677", folder)
    assert (elsewhere.host, elsewhere.port, elsewhere.token) == ("login1", 5677, None)


def test_localhost_is_where_a_session_listens_on_all_addresses(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    SessionFile("0.0.0.0", 5677, pid=sleeper.pid).write(folder)
    assert find("localhost:5677", folder).pid == sleeper.pid
    assert find("127.0.0.1:5677", folder).pid == 0


def test_a_file_is_found_by_its_path(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    path = SessionFile("127.0.0.1", 5677, pid=sleeper.pid).write(folder)
    assert find(str(path)).port == 5677
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(NothingToConnect, match="has ended"):
        find(str(path))
    with pytest.raises(NothingToConnect, match="no session file"):
        find(str(folder / "none.json"))
    with pytest.raises(UsageError, match="neither HOST:PORT nor a session file"):
        find("nonsense")


def test_the_folder_follows_the_runtime_directory() -> None:
    assert session_folder({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/dap-mux")
    for environ in ({}, {"XDG_RUNTIME_DIR": "relative"}):
        assert session_folder(environ).name == f"dap-mux-{os.getuid()}"


@pytest.mark.parametrize("text", ["localhost:65536", "localhost:99999", "[::1]:70000"])
def test_a_port_above_the_last_does_not_wrap_round(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="the last one is 65535"):
        find(text, tmp_path)


@pytest.mark.parametrize("what", ["another user's", "a link", "a file"])
def test_a_name_that_others_have_taken_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Without XDG_RUNTIME_DIR: the session's files are in the home then, for all commands."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    taken = session_folder()
    assert taken.parent == tmp_path
    if what == "another user's":
        if os.geteuid():
            pytest.skip("only root can give a folder away")
        taken.mkdir()
        os.chown(taken, 65534, 65534)
    elif what == "a link":
        taken.symlink_to(tmp_path)
    else:
        taken.touch()
    file = SessionFile("127.0.0.1", 5678)
    assert home in file.write().parents
    assert [one.port for one in running()] == [5678]
    file.remove()
    assert not running()
