"""Worlds to select from, and hypothesis strategies for rank sets."""

from __future__ import annotations

from hypothesis import strategies as st

from dap_mux.pure.rank_sets import STATES, Mesh, RankSet, World, parse


def world(
    *,
    groups: dict[str, int] | None = None,
    mesh: str = "",
    states: dict[int, str] | None = None,
    names: dict[str, str] | None = None,
    default_group: str = "job",
) -> World:
    """Groups by their number of ranks (one group `job` of 8); mesh and states are `job`'s."""
    ranks = [
        (group, rank) for group, size in (groups or {"job": 8}).items() for rank in range(size)
    ]
    return World(
        ranks=tuple(sorted(ranks)),
        meshes={"job": Mesh.parse(mesh)} if mesh else {},
        states={("job", rank): state for rank, state in (states or {}).items()},
        names={name: parse(text) for name, text in (names or {}).items()},
        default_group=default_group,
    )


def numbers(text: str | RankSet, where: World, *, strict: bool = True) -> list[int]:
    """The ranks that a text selects in a world with one group."""
    chosen = parse(text) if isinstance(text, str) else text
    return [rank for _, rank in chosen.select(where, strict=strict)]


def bounds(limit: int = 12) -> st.SearchStrategy[int | None]:
    """One end of a slice."""
    return st.none() | st.integers(0, limit)


@st.composite
def slices(draw: st.DrawFn) -> slice:
    """A Python slice of the kind that rank sets know: nothing negative."""
    return slice(draw(bounds()), draw(bounds()), draw(st.none() | st.integers(1, 4)))


def spell(part: slice) -> str:
    """A slice as it is written."""
    start, stop, step = (
        "" if end is None else str(end) for end in (part.start, part.stop, part.step)
    )
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


_PIECES = st.integers(0, 7).map(str) | st.tuples(st.integers(0, 7), st.integers(0, 4)).map(
    lambda ends: f"{ends[0]}-{ends[0] + ends[1]}"
)
_LISTS = st.lists(_PIECES, min_size=1, max_size=3).map(",".join)
HEADS = (
    slices().map(lambda part: f"ranks({spell(part)})")
    | _LISTS.map(lambda text: f"job.ranks({text})")
    | st.tuples(st.sampled_from(["dp", "tp"]), slices()).map(
        lambda dim: f"job.ranks({dim[0]}={spell(dim[1])})"
    )
    | st.sampled_from(["ranks()", "@slow", "ranks(dp=(0,1), tp=2)"])
)
"""Those atoms that may stand at the head of a condition."""

_ATOMS = (
    HEADS
    | _LISTS
    | _LISTS.map(lambda text: f"job:{text}")
    | st.sampled_from(["all", "job:all", "(3)", *STATES])
)

RANK_SETS = st.recursive(
    _ATOMS,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["|", "&", "-", ";"]), inner).map(
            lambda three: f"({three[0]}) {three[1]} {three[2]}"
        )
        | inner.map(lambda text: f"~({text})")
    ),
    max_leaves=5,
)
"""Texts that mean something in `BUSY`."""

BUSY = world(
    mesh="dp=2,tp=4",
    states={rank: STATES[rank % len(STATES)] for rank in range(8)},
    names={"slow": "3 | stopped"},
)
