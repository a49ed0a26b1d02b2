"""A rank that is taken goes on where its file cannot be written, or its values not be read."""

from __future__ import annotations

import platform
import random
import sys
from pathlib import Path

import pytest

from dap_mux.rank.comm.record import Call
from dap_mux.rank.take.rank_file import RankFile, digest_of
from dap_mux.rank.take.reasons import FIRST, Reasons, Remarks
from dap_mux.rank.take.recorder import NO_LIMIT, Recorder


def test_a_full_disk_is_said_once_and_the_rank_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "2.rank"
    recorder = Recorder(str(path), 2, 4, {}, NO_LIMIT, said.append)
    calls = [Call("allreduce_", ("0", ""), number) for number in range(1, 5)]
    recorder.enter(calls[0], [])
    recorder.received(calls[0], [])
    recorder._writer.end()
    for call in calls[1:]:
        recorder.enter(call, [])
        recorder.received(call, [])
    recorder.end()
    assert [each.partition(": ")[0] for each in said] == ["is taken no further than call 2"]
    assert [taken.call["number"] for taken in RankFile(str(path)).calls] == [1]


def test_what_is_another_than_it_was_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, model = tmp_path / "train.py", tmp_path / "model.py"
    for path in (script, model):
        path.write_text("pass\n")
    monkeypatch.setattr(sys, "argv", [str(script)])
    remarks, recorded = Remarks(), []
    for number in range(1, FIRST + 3):
        call = Call("allreduce_", ("0", ""), number)
        random.seed(number)
        call.place, call.step = f"{model}:{number} forward", number // FIRST
        recorded.append((call, {"order": number, **remarks.on(call)}))
    assert "random_states" not in recorded[-1][1], "neither at the beginning, nor a step's first"
    head = {"digest": digest_of(str(script)), "python": f"{platform.python_version()} (x)"}
    same = Reasons(head, [])
    for call, then in recorded:
        random.seed(call.number)
        same.note(then, call)
    assert not same.known()
    other = Reasons({**head, "python": "3.1.4 (x)"}, [])
    for path in (script, model):
        path.write_text("...\n")
    other.note(recorded[0][1], recorded[0][0])
    other.note(recorded[1][1], recorded[1][0])
    now = platform.python_version()
    assert other.known() == (
        f"; {model} is not the file that was run then; {script} is not the file that was run then; "
        f"the random state of Python is another from call 2 on; python is {now}, it was 3.1.4"
    )
