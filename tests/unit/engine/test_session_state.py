"""The session's caches stay correct when ranks are added, move and are removed."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from dap_mux.engine.inputs import Settings
from dap_mux.engine.state.rank import Frame, Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.stops.user_threads import learn_stack
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.rank_messages import Stack
from dap_mux.pure.rank_sets import Mesh
from dap_mux.session.session import injected_sources

HERE: Final = Endpoint("10.0.0.1", 5678)


def session(*numbers: int) -> SessionState:
    core = SessionState(injected_sources(), Settings())
    for number in numbers:
        core.add(Rank(("job", number), HERE))
        core.ranks_changed()
    return core


def test_the_order_follows_ranks_that_come_and_go() -> None:
    core = session(2, 0)
    assert [rank.number for rank in core.sorted_ranks()] == [0, 2]
    core.add(Rank(("job", 1), HERE))
    assert [rank.number for rank in core.sorted_mains()] == [0, 1, 2]
    core.remove(core.ranks["job", 0])
    assert [rank.number for rank in core.sorted_ranks()] == [1, 2]
    assert core.world().ranks == (("job", 1), ("job", 2))


def test_the_world_follows_meshes_and_settings() -> None:
    core = session(0, 1)
    assert core.world().meshes == {}
    core.found_meshes["job"] = mesh = Mesh.parse("dp=2")
    assert core.world().meshes == {"job": mesh}
    del core.found_meshes["job"]
    assert core.world().meshes == {}
    core.adopt(replace(core.settings, default_group="eval"))
    assert core.world().default_group == "eval"


def test_names_need_group_and_host_while_there_are_several() -> None:
    core = session(0)
    assert not core.several_groups
    assert core.default_group() == "job"
    other = Rank(("eval", 0), Endpoint("10.0.0.2", 5678))
    core.add(other)
    core.ranks_changed()
    assert core.several_groups
    assert core.several_hosts
    other.endpoint = HERE
    core.ranks_changed()
    assert not core.several_hosts
    core.remove(other)
    assert not core.several_groups


def test_workers_are_their_ranks_own_and_in_order() -> None:
    core = session(0, 1)
    main = core.ranks["job", 0]
    second, first = (Rank(("job", 0, number), HERE, main=main) for number in (2, 1))
    core.add(second)
    core.add(first)
    assert core.workers_of(main) == [first, second]
    assert core.workers_of(core.ranks["job", 1]) == []
    core.remove(first)
    core.remove(first)
    assert core.workers_of(main) == [second]


# The frames that a stop keeps of its stack.


def test_the_frame_that_raised_has_its_own_name() -> None:
    """debugpy marks it; in the table of ranks it would look like a function of another name."""
    said = {"id": 1, "name": "work (Current frame)", "line": 3, "source": {"path": "/job/a.py"}}
    stop = Stop(1, "exception", {})
    learn_stack(None, None, stop, msgspec.convert({"stackFrames": [said]}, Stack))  # type: ignore[arg-type]
    assert stop.frames == (Frame("/job/a.py", "work", 3),)
