"""Which rank of a failed job was first, decided from what the ranks have left behind."""

from __future__ import annotations

import signal
import time
from typing import Final

import pytest
from msgspec.structs import replace

from dap_mux.pure.insight.end_of_job import end_of_job
from dap_mux.pure.insight.end_of_job_block import lines_of
from dap_mux.pure.insight.ended import IN_PEACE, Ended, Written

COMMAND: Final = "-- torchrun train.py"
CLOSED: Final = "Connection closed by peer [127.0.0.1]:4711"
CRASH: Final = """\
Fatal Python error: Segmentation fault

Thread 0x00007f0 (most recent call first):
  File "/app/loader.py", line 9 in fetch

Current thread 0x00007f1 (most recent call first):
  File "/env/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/app/train.py", line 12 in step
  File "/app/train.py", line 30 in <module>

Extension modules: numpy._core (total: 1)
"""


def ended(
    rank: int,
    at: float,
    code: int | None = 1,
    *,
    reason: str = "",
    host: str = "a",
    crash: str = "",
    printed: str = "",
) -> Ended:
    words = reason or ("" if code is None else f"exit code {code}")
    return Ended(("job", rank), host, 100 + rank, at, code, words, None, crash, printed)


def raised(rank: int, at: float, error: str, message: str, line: int = 7) -> Ended:
    written = Written(
        "exception", at, 100 + rank, error, message, None, "/app/train.py", line, "step"
    )
    one = ended(rank, at + 0.2)
    return Ended(one.rank, one.host, one.pid, one.at, one.code, one.reason, written)


def first_line(*ranks: Ended, missing: tuple[int, ...] = ()) -> str:
    return lines_of(end_of_job(1, ranks, [("job", each) for each in missing], COMMAND))[0]


def test_a_victim_that_was_seen_earlier_is_not_first() -> None:
    end = end_of_job(
        1,
        [
            raised(1, 9.9, "RuntimeError", CLOSED),
            raised(2, 10.0, "ValueError", "no rows"),
            raised(3, 9.8, "DistBackendError", "Connection reset by peer"),
            ended(0, 11.0, -signal.SIGTERM, reason="SIGTERM (15)"),
        ],
        [],
        COMMAND,
    )
    assert end.first is not None
    assert (end.first.ranks, end.first.certain) == ("rank 2", True)
    assert [(each.ranks, each.after) for each in end.others[-1:]] == [("rank 0", 1.0)]
    assert lines_of(end)[-1] == f"  next    dap-mux run --hold {COMMAND}"


@pytest.mark.parametrize(
    ("gap", "host", "certain"), [(0.4, "a", True), (0.01, "a", False), (0.4, "b", False)]
)
def test_the_earlier_of_two_causes_is_first_and_may_be_a_guess(
    gap: float, host: str, certain: bool
) -> None:
    one, other = raised(2, 10.0, "ValueError", "x"), raised(1, 10.0 + gap, "KeyError", "y", 8)
    end = end_of_job(1, [Ended(other.rank, host, 1, 11.0, 1, "", other.written), one], [], COMMAND)
    assert end.first is not None
    assert (end.first.ranks, end.first.certain) == ("rank 2", certain)
    assert ("first (probably): rank 2" in lines_of(end)[0]) is not certain


def test_ranks_that_fail_alike_are_first_together() -> None:
    ranks = [raised(each, 10 + each, "ImportError", f"no lib{each}") for each in range(4)]
    assert first_line(*ranks).endswith("first: ranks 0-3, ImportError: no lib0")


def test_a_signal_is_told_with_the_users_own_line() -> None:
    crashed = ended(2, 10.0, -signal.SIGSEGV, reason="SIGSEGV (11)", crash=CRASH)
    lines = lines_of(end_of_job(1, [crashed, raised(0, 9.9, "RuntimeError", CLOSED)], [], COMMAND))
    assert lines[0].endswith("first: rank 2, SIGSEGV (11): Segmentation fault")
    assert lines[1] == "  at      train.py:12 in step  (/app/train.py)"


def test_an_exit_that_the_program_has_caught_is_not_its_end() -> None:
    caught = Written("sys.exit", 5.0, 102, code=2, file="/app/train.py", line=3)
    one = Ended(("job", 2), "a", 102, 10.0, 3, "exit code 3", caught)
    assert first_line(one).endswith("first: rank 2, exit code 3")
    assert first_line(Ended(("job", 2), "a", 102, 10.0, 2, "", caught)).endswith("sys.exit(2)")


def test_an_unknown_exit_code_is_a_failure_unless_python_came_to_its_end() -> None:
    in_peace = Written(IN_PEACE, 9.0, 101, code=0)
    ranks = [Ended(("job", 1), "a", 101, 9.0, None, "", in_peace), ended(2, 10.0, None)]
    assert "first: rank 2, killed, or ended by a library" in first_line(*ranks)


def test_where_all_say_that_another_is_missing_it_is_the_one_that_never_came() -> None:
    timed_out = [raised(each, 10.0, "DistStoreError", "Timed out after 61 s") for each in (0, 1)]
    assert "first (probably): rank 2, never reported here" in first_line(*timed_out, missing=(2,))
    assert "first (probably): rank" in first_line(*timed_out)


def test_lines_that_others_print_too_are_left_out() -> None:
    ranks = [
        ended(2, 10.0, printed="step 1 loss 0.5\nshard 7 is empty\n"),
        ended(1, 12.0, printed="step 1 loss 0.25\nstep 2 loss 0.1\n"),
    ]
    lines = lines_of(end_of_job(1, ranks, [], COMMAND))
    assert "  printed shard 7 is empty" in lines
    assert not any("loss" in line for line in lines)


def test_versions_that_differ_are_named() -> None:
    ranks = [
        Ended(("job", each), "a", each, 10.0, 1, "", Written("exception", 9.0 + each, each, "E",
            versions={"torch": "2.4" if each == 2 else "2.5", "python": "3.11.7"}))
        for each in range(4)
    ]  # fmt: skip
    end = end_of_job(1, ranks, [], COMMAND)
    assert end.versions == {"torch": {"2.5": "0-1,3", "2.4": "2"}}
    assert "  differ  torch: 2.5 on 0-1,3; 2.4 on 2" in lines_of(end)


def test_a_job_whose_ranks_ended_well_says_that() -> None:
    peace = Ended(("job", 0), "a", 1, 9.0, 0, "exit code 0", Written(IN_PEACE, 9.0, 1, code=0))
    assert (
        first_line(peace) == "the job failed: exit code 1; no rank of it failed, as far as is known"
    )


def test_control_characters_of_a_rank_are_shown() -> None:
    nasty = raised(2, 9.0, "ValueError", "x\x1b[2J\ny\x07z")
    assert not any(one in line for line in lines_of(end_of_job(1, [nasty], [], COMMAND))
                   for one in "\x1b\x07\n")  # fmt: skip


def of_launcher(
    error: str, message: str, worker: int | None = None, code: int | None = None
) -> Ended:
    written = Written(
        "exception", 11.0, 99, error, message, code, program="torchrun", worker=worker
    )
    return Ended(("", -1), "a", 99, 11.0, written=written)


def test_a_launcher_that_failed_before_there_was_a_rank() -> None:
    failed = of_launcher("DistNetworkError", "port: 29500, EADDRINUSE")
    lines = lines_of(end_of_job(1, [], [], COMMAND, launcher=failed))
    assert lines[0].endswith("first: torchrun, DistNetworkError: port: 29500, EADDRINUSE")
    assert "  because it failed before there was a rank" in lines


SPAWNED: Final = """

-- Process 2 terminated with the following error:
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/app/train.py", line 28, in main
    import no_such_package
ModuleNotFoundError: No module named 'no_such_package'
"""


@pytest.mark.parametrize(
    ("said", "code", "how", "place"),
    [
        (SPAWNED, None, "ModuleNotFoundError: No module named 'no_such_package'", "train.py:28"),
        ("process 2 terminated with exit code 3", 3, "exit code 3", None),
        ("process 2 terminated with signal SIGSEGV", -11, "signal SIGSEGV", None),
    ],
)
def test_a_worker_that_never_became_a_rank(
    said: str, code: int | None, how: str, place: str | None
) -> None:
    """`torch.multiprocessing.spawn` says of which of its processes it ends."""
    spawner = of_launcher("ProcessRaisedException", said, 2, code)
    ended_by = [ended(each, 10.5, -15, reason="SIGTERM (15)") for each in (0, 1, 3)]
    lines = lines_of(end_of_job(1, ended_by, [("job", 2)], COMMAND, launcher=spawner))
    assert lines[0].endswith(f"first: rank 2, {how}")
    assert (place is None) or lines[1].startswith(f"  at      {place} in main")
    assert not any("missing" in line for line in lines)


@pytest.mark.parametrize(
    ("kind", "how"), [("exception", "ValueError: no shard"), ("sys.exit", "sys.exit(1)")]
)
def test_a_process_that_was_to_be_a_rank(kind: str, how: str) -> None:
    """Lightning's main process, which is rank 0, kills all and then itself when one ends early."""
    error, said = ("ValueError", "no shard") if kind == "exception" else ("", "")
    code = None if kind == "exception" else 1
    written = Written(kind, 9.0, 99, error, said, code, program="train.py", local_rank=2)
    early = Ended(("", -1), "a", 99, 9.0, written=written)
    main = ended(0, 10.5, -9, reason="SIGKILL (9), not sent by dap-mux")
    missing = [("job", each) for each in (1, 2, 3)]
    lines = lines_of(end_of_job(137, [main], missing, COMMAND, launcher=early))
    assert lines[0].endswith(f"first: rank 2, {how}")
    assert any(line.startswith("  missing ranks 1,3") for line in lines)


def test_ranks_of_hosts_that_share_no_folder_are_named_with_where_their_files_are() -> None:
    closed = raised(0, 10.0, "RuntimeError", CLOSED)
    unseen = {("job", each): "node2" for each in (2, 3)}
    lines = lines_of(end_of_job(1, [closed], [], COMMAND, unseen=unseen))
    assert "first (probably): ranks 2-3, which ran on node2, out of" in lines[0]
    assert (
        "  unseen  ranks 2-3: what they left is on node2, in TMPDIR/dap-mux-ranks-kept-*" in lines
    )


def test_who_ended_by_itself_comes_before_those_that_ended_without_a_word() -> None:
    """`raise SystemExit("no config")`, where mpirun alone knows the exit codes."""
    peace = Written(IN_PEACE, 9.0, 102, code=0)
    ranks = [
        Ended(("job", 2), "a", 102, 9.5, None, "", peace, "", "no config\n"),
        ended(0, 9.8, None),
        *(ended(each, 9.9, -15, reason="SIGTERM (15)") for each in (1, 3)),
    ]
    lines = lines_of(end_of_job(1, ranks, [], COMMAND))
    assert "first (probably): rank 2, ended by itself (exit code unknown)" in lines[0]
    assert "  printed no config" in lines


def test_who_ends_well_before_all_others_lose_it_is_first() -> None:
    lost = [raised(each, 10.0 + each / 10, "ConnectionError", "rank 2 has left") for each in (0, 1)]
    left = ended(2, 9.5, 0, printed="no cells\n")
    lines = lines_of(end_of_job(1, [left, *lost], [], COMMAND))
    assert "first (probably): rank 2, ended as if it were done, while others ran on" in lines[0]
    assert "  printed no cells" in lines
    then = (
        "  then    ranks 0-1, 500 ms later: ConnectionError: rank 2 has left at train.py:7 in step"
    )
    assert then in lines
    # Who is done when most others are done too is none, nor who ends after the first failure.
    assert "first: rank 0," in first_line(*lost[:1], ended(2, 9.5, 0), ended(3, 9.6, 0))
    assert "first: ranks 0-1," in first_line(*lost, ended(2, 11.0, 0))
    own = raised(1, 10.1, "ValueError", "no such layer")
    reset = raised(0, 10.0, "ConnectionResetError", "Connection reset by peer")
    assert "first: rank 1, ValueError" in first_line(left, reset, own)


def test_a_program_that_is_not_there() -> None:
    peace = Written(IN_PEACE, 9.0, 102, code=0)
    one = Ended(("job", 2), "a", 102, 9.5, 2, "exit code 2", peace)
    assert first_line(one).endswith("rank 2, exit code 2: Python could not open its program")


MANY: Final = 512
CULPRIT: Final = 300


def of_many(culprit: Ended, number: int, message: str) -> Ended:
    if number == CULPRIT:
        return culprit
    one = raised(number, 10.4, "RuntimeError", message.format(number, chr(97 + number % 26)), 9)
    return replace(one, printed="step 1\n" * 500)


@pytest.mark.parametrize("message", ["Connection closed by peer [10.0.0.1]:{}", "broken pipe {1}"])
def test_the_block_of_many_ranks_is_short_and_quick(message: str) -> None:
    culprit = raised(CULPRIT, 10.0, "ValueError", "no rows" + " and more" * 1000)
    ranks = [of_many(culprit, number, message) for number in range(MANY)]
    began = time.process_time()
    lines = lines_of(end_of_job(1, ranks, [], COMMAND))
    assert time.process_time() - began < 2
    assert f"first: rank {CULPRIT}, ValueError: no rows" in lines[0]
    assert len(lines) < 14
    assert max(map(len, lines)) < 420
    if "[" in message:
        assert any(
            line.startswith("  then    ranks 0-299,301-511, 400 ms later:") for line in lines
        )
