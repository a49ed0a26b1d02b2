"""A rank that is taken goes on where its file cannot be written, or its values not be read."""

from __future__ import annotations

from pathlib import Path

from dap_mux.rank.comm.record import Call
from dap_mux.rank.take.rank_file import RankFile
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
