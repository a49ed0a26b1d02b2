"""Handles: never another rank's data, never used again, and bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from dap_mux.engine.state.handles import MAX_HANDLE, Handles
from dap_mux.pure.errors import DapMuxError, StaleHandle
from dap_mux.pure.protocol.exchange import Id, Kind
from dap_mux.pure.rank_sets import RankId
from tests.conftest import rounds

RANK_0: Final[RankId] = ("job", 0)
RANK_1: Final[RankId] = ("job", 1)
EVAL: Final[RankId] = ("eval", 1)

OF_A_STOP: Final = [
    Kind.FRAME,
    Kind.VARIABLES,
    Kind.GOTO,
    Kind.STEP_IN,
    Kind.LOCATION,
    Kind.MEMORY,
]
LASTING: Final = [kind for kind in Kind if kind not in OF_A_STOP]


def why(handles: Handles, kind: Kind, handle: Id) -> str:
    """Return the sentence with which `handle` is refused."""
    with pytest.raises(StaleHandle) as caught:
        handles.resolve(kind, handle)
    return str(caught.value)


def test_handles_start_at_1_and_lead_back() -> None:
    handles = Handles()
    assert handles.mint(RANK_0, Kind.FRAME, 0) == 1
    assert handles.mint(RANK_1, Kind.FRAME, 0) == 2
    assert handles.resolve(Kind.FRAME, 1) == (RANK_0, 0)
    assert handles.resolve(Kind.FRAME, 2) == (RANK_1, 0)


def test_text_stays_text_and_is_no_number() -> None:
    handles = Handles()
    text = handles.mint(RANK_0, Kind.MODULE, "3")
    number = handles.mint(RANK_0, Kind.MODULE, 3)
    assert isinstance(text, str)
    assert text != str(number)
    assert handles.resolve(Kind.MODULE, text) == (RANK_0, "3")
    assert handles.resolve(Kind.MODULE, number) == (RANK_0, 3)
    assert why(handles, Kind.MODULE, int(text)).startswith(f"module id {text} is stale")


@pytest.mark.parametrize("kind", OF_A_STOP)
def test_what_belongs_to_a_stop_dies_when_the_rank_runs_on(kind: Kind) -> None:
    handles = Handles()
    mine, other = handles.mint(RANK_0, kind, 1), handles.mint(RANK_1, kind, 1)
    handles.expire_stop(RANK_0)
    assert why(handles, kind, mine) == f"{kind.value} 1 is stale: rank 0 has run on since"
    assert handles.resolve(kind, other) == (RANK_1, 1)
    assert handles.mint(RANK_0, kind, 1) not in (mine, other)


@pytest.mark.parametrize("kind", LASTING)
def test_the_rest_lasts_as_long_as_the_rank(kind: Kind) -> None:
    handles = Handles()
    handle = handles.mint(EVAL, kind, 1)
    handles.expire_stop(EVAL)
    assert handles.resolve(kind, handle) == (EVAL, 1)
    handles.expire_rank(EVAL)
    assert why(handles, kind, handle) == f"{kind.value} 1 is stale: rank 1 @eval is gone"


@pytest.mark.parametrize("handle", [0, -1, 2, 2**31, 2**80, "1", "x", "", "²", "9" * 5000])
def test_unknown(handle: Id) -> None:
    handles = Handles()
    handles.mint(RANK_0, Kind.FRAME, 1)
    assert "stale" in why(handles, Kind.FRAME, "1")
    if handle != "1":
        assert why(handles, Kind.FRAME, handle).endswith("session never handed it out")


def test_a_handle_of_another_kind() -> None:
    handles = Handles()
    handles.mint(RANK_0, Kind.FRAME, 1)
    assert why(handles, Kind.VARIABLES, 1) == "1 is a frame id, not a variables reference"


def test_the_last_number_and_no_further() -> None:
    handles = Handles(first=MAX_HANDLE)
    assert handles.mint(RANK_0, Kind.FRAME, 1) == MAX_HANDLE
    with pytest.raises(DapMuxError, match="used up its ids"):
        handles.mint(RANK_0, Kind.FRAME, 2)
    assert handles.resolve(Kind.FRAME, MAX_HANDLE) == (RANK_0, 1)


def test_memory_does_not_grow_with_stops() -> None:
    handles = Handles()
    tracemalloc.start()
    try:
        stop_and_go(handles, 1_000)
        before = tracemalloc.get_traced_memory()[0]
        stop_and_go(handles, 10_000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(handles) == 1
    assert grown < 64 * 1024
    assert why(handles, Kind.FRAME, 2) == "frame id 2 is stale: its rank has run on since"


def stop_and_go(handles: Handles, times: int) -> None:
    """Stop and resume a rank, with ids in use as debugpy gives them: the same small numbers."""
    handles.mint(RANK_0, Kind.SOURCE, 1)
    for _ in range(times):
        for upstream in range(5):
            handles.mint(RANK_0, Kind.FRAME, upstream)
            handles.mint(RANK_0, Kind.VARIABLES, upstream)
        handles.expire_stop(RANK_0)


ranks = st.sampled_from([RANK_0, RANK_1, EVAL])
kinds = st.sampled_from([Kind.FRAME, Kind.VARIABLES, Kind.SOURCE, Kind.MODULE, Kind.MEMORY])
upstreams = st.integers(0, 3) | st.sampled_from(["0", "1"])


class HandlesModel(RuleBasedStateMachine):
    """A plain dict says what each handle ever given out means now."""

    given = Bundle("given")

    def __init__(self) -> None:
        super().__init__()
        self.handles = Handles()
        self.alive: dict[Id, tuple[RankId, Kind, Id]] = {}
        self.ever: set[int] = set()

    @rule(target=given, rank=ranks, kind=kinds, upstream=upstreams)
    def mint(self, rank: RankId, kind: Kind, upstream: Id) -> Id:
        handle = self.handles.mint(rank, kind, upstream)
        meaning = (rank, kind, upstream)
        if handle in self.alive:
            assert self.alive[handle] == meaning
        else:
            assert meaning not in self.alive.values()
            assert int(handle) not in self.ever
        self.alive[handle] = meaning
        self.ever.add(int(handle))
        assert type(handle) is type(upstream)
        return handle

    @rule(handle=given, kind=kinds)
    def resolve(self, handle: Id, kind: Kind) -> None:
        rank, known, upstream = self.alive.get(handle, (None, None, None))
        if known is kind:
            assert self.handles.resolve(kind, handle) == (rank, upstream)
        else:
            why(self.handles, kind, handle)

    @rule(handle=consumes(given))
    def forget(self, handle: Id) -> None:
        """Keep the bundle small, so that fresh handles are asked for often."""

    @rule(rank=ranks)
    def run_on(self, rank: RankId) -> None:
        self.handles.expire_stop(rank)
        self.drop(rank, [Kind.FRAME, Kind.VARIABLES, Kind.MEMORY])

    @rule(rank=ranks)
    def go(self, rank: RankId) -> None:
        self.handles.expire_rank(rank)
        self.drop(rank, list(Kind))

    def drop(self, rank: RankId, gone: list[Kind]) -> None:
        self.alive = {h: m for h, m in self.alive.items() if m[0] != rank or m[1] not in gone}

    @invariant()
    def as_many_as_are_alive(self) -> None:
        assert len(self.handles) == len(self.alive)


HandlesModel.TestCase.settings = settings(
    max_examples=rounds(200), stateful_step_count=40, deadline=None
)
TestHandlesModel = pytest.mark.slow(HandlesModel.TestCase)
