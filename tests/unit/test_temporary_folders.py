"""Temporary folders: not left empty, and removed long after their run was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dap_mux.rank.frameworks import arming
from dap_mux.system.temporary_folders import LOGS, LONG_GONE, RANKS, hold, temporary_folder

KILLED = """
import os, signal, sys
from dap_mux.system.temporary_folders import temporary_folder
with temporary_folder(sys.argv[1]) as folder:
    (folder / "rank-0.log").write_text("said")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
UNPACKS = """
import time
from dap_mux.rank.frameworks import arming
arming.unpack(arming.rank_bundle())
print("there", flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def killed(place: Path, prefix: str) -> Path:
    """The folder of a run that was killed."""
    environ = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", KILLED, prefix]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip())


def age(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def test_an_empty_one_goes_and_one_with_something_stays(place: Path) -> None:
    with temporary_folder(LOGS) as empty:
        (empty / "rank-0.log").touch()
    assert not empty.exists()
    with temporary_folder(LOGS) as full:
        (full / "rank-0.log").write_text("said")
    assert [path.name for path in full.iterdir()] == ["rank-0.log"]
    age(full, LONG_GONE + 60)
    with temporary_folder(LOGS):
        assert full.exists(), "its run has ended well: somebody may read that"


@pytest.mark.parametrize("prefix", [LOGS, RANKS])
def test_a_killed_runs_goes_once_that_is_long_gone(place: Path, prefix: str) -> None:
    folder = killed(place, prefix)
    with temporary_folder(prefix):
        assert folder.exists(), "it was killed only just now"
    age(folder, LONG_GONE + 60)
    with temporary_folder(prefix):
        assert not folder.exists()


def test_never_that_of_a_living_process(place: Path) -> None:
    with temporary_folder(RANKS) as own:
        age(own, LONG_GONE + 60)
        with temporary_folder(RANKS):
            assert own.exists(), "its session lives"
    writes, named = killed(place, LOGS), killed(place, RANKS)
    (named / f"host-{os.getpid()}.json").write_text("{}")
    for folder in (writes, named):
        age(folder, LONG_GONE + 60)
    with (writes / "rank-0.log").open("ab") as log:
        hold(log)
        with temporary_folder(LOGS), temporary_folder(RANKS):
            assert writes.exists(), "a rank writes its log there"
            assert named.exists(), "a rank may write again there"


def test_a_start_lists_only_what_killed_runs_have_left_long_ago(place: Path) -> None:
    """There may be thousands of logs in each folder of an earlier run."""
    with temporary_folder(LOGS) as ended:
        (ended / "rank-0.log").write_text("said")
    late, old = killed(place, LOGS), killed(place, LOGS)
    age(ended, LONG_GONE + 60)
    age(old, LONG_GONE + 60)
    listed: list[str] = []
    looking = True

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if looking and event in ("os.listdir", "os.scandir"):
            listed.append(str(arguments[0]))

    sys.addaudithook(look)  # for good: it cannot be taken away
    with temporary_folder(LOGS):
        looking = False
    assert str(old) in listed
    assert not {str(ended), str(late)}.intersection(listed)


@pytest.mark.parametrize(
    "name", ["²-{}-x", "9" * 20 + "-{}-x", "9" * 100 + "-{}-x", "-{}-x", "one-x"]
)
def test_a_worker_s_name_without_a_process_id_is_left_alone(place: Path, name: str) -> None:
    """The folders of killed workers are removed, whatever else has been put beside them."""
    here = arming._pid_namespace()
    odd, left = place / f"{arming.PREFIX}{name.format(here)}", worker_s(place, here)
    odd.mkdir()
    arming._remove_leftovers()
    assert odd.exists()
    assert not left.exists()


def test_the_folder_of_another_container_is_left_alone(place: Path) -> None:
    """Its process may live, and cannot be seen from here."""
    theirs = worker_s(place, "4026500000")
    arming._remove_leftovers()
    assert theirs.exists()


def test_a_living_worker_s_folder_says_where_it_lives(place: Path) -> None:
    """Another worker of the same container leaves it alone, and removes it once it is killed."""
    words = [sys.executable, "-c", UNPACKS]
    environ = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "there\n"
        arming._remove_leftovers()
        assert [*place.iterdir()]
        worker.kill()
    arming._remove_leftovers()
    assert not [*place.iterdir()]


def worker_s(place: Path, namespace: str) -> Path:
    """The folder of a worker whose pid is nobody's here."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    folder = place / f"{arming.PREFIX}{ended.pid}-{namespace}-x"
    folder.mkdir()
    return folder
