"""What a rank set selects: meshes as numpy would index them, groups, absent ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.rank_sets import Mesh, RankSetError, World, parse
from tests.unit.rank_sets.worlds import numbers, slices, spell, world

NAMES = ("pp", "dp", "cp", "tp")


@st.composite
def meshes(draw: st.DrawFn) -> tuple[tuple[str, int], ...]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return tuple(zip(NAMES, sizes, strict=False))


@st.composite
def choices(draw: st.DrawFn, size: int) -> tuple[str, list[int]]:
    """What to write for one dimension, and the coordinates which numpy says it means."""
    places = np.arange(size)
    part = draw(slices())
    picked = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3))
    first = draw(st.integers(0, size))
    written: tuple[str, list[int]] = draw(
        st.sampled_from(
            [
                (spell(part), places[part].tolist()),
                (f"({','.join(map(str, picked))})", sorted(set(picked))),
                (str(picked[0]), [picked[0]]),
                (f"{first}-{first + 2}", places[first : first + 3].tolist()),
                (f"({spell(part)}, {picked[0]})", sorted({*places[part].tolist(), picked[0]})),
            ]
        )
    )
    return written


@given(data=st.data(), dims=meshes())
def test_dimensions_index_the_mesh_as_numpy_does(
    data: st.DataObject, dims: tuple[tuple[str, int], ...]
) -> None:
    sizes = dict(dims)
    drawn = {name: data.draw(choices(size), label=name) for name, size in dims}
    used = data.draw(st.permutations(dims))[: data.draw(st.integers(1, len(dims)))]
    text = ", ".join(f"{name}={drawn[name][0]}" for name, _ in used)
    wanted = {name for name, _ in used}
    grid = np.ix_(*(drawn[name][1] if name in wanted else range(sizes[name]) for name in sizes))
    expected = np.arange(np.prod(list(sizes.values()))).reshape(list(sizes.values()))[grid]

    mesh = Mesh(dims)
    where = world(groups={"job": mesh.size}, mesh=str(mesh))
    assert numbers(f"ranks({text})", where) == sorted(expected.ravel().tolist())


@given(data=st.data(), dims=meshes())
def test_a_permuted_mesh_is_indexed_as_numpy_does(
    data: st.DataObject, dims: tuple[tuple[str, int], ...]
) -> None:
    """The ranks lie anyhow in the mesh, as DeviceMesh allows."""
    sizes = [size for _, size in dims]
    order = data.draw(st.permutations(range(int(np.prod(sizes)))))
    grid = np.array(order).reshape(sizes)
    places = {
        int(rank): {name: int(at) for (name, _), at in zip(dims, place, strict=True)}
        for place, rank in np.ndenumerate(grid)
    }
    where = World(
        tuple(("job", rank) for rank in range(len(order))), {"job": Mesh(dims, places)}, {}, {}
    )
    axis = data.draw(st.integers(0, len(dims) - 1))
    text, expected = data.draw(choices(sizes[axis]))
    chosen = np.take(grid, expected, axis=axis).ravel().tolist()
    assert numbers(f"ranks({dims[axis][0]}={text})", where) == sorted(set(chosen))


def test_a_rank_whose_place_is_not_known_is_chosen_by_none() -> None:
    mesh = Mesh((("dp", 2), ("tp", 2)), {0: {"dp": 0, "tp": 0}, 1: {"dp": 0}})
    where = World(tuple(("job", rank) for rank in range(3)), {"job": mesh}, {}, {})
    assert numbers("ranks(dp=0)", where) == [0, 1]
    assert numbers("ranks(tp=:)", where) == [0]


class TestMonarchsForms:
    """The four forms of Monarch's pull request, on a 3 x 4 x 8 mesh."""

    WHERE = world(groups={"job": 96}, mesh="pp=3,dp=4,tp=8")

    @pytest.mark.parametrize(
        ("text", "ranks"),
        [
            ("ranks(3)", [3]),
            ("ranks(1,3,5)", [1, 3, 5]),
            ("ranks(1:10:2)", [1, 3, 5, 7, 9]),
            (
                "ranks(pp=2, dp=(1,3), tp=2:8)",
                [64 + dp * 8 + tp for dp in (1, 3) for tp in range(2, 8)],
            ),
        ],
    )
    def test_form(self, text: str, ranks: list[int]) -> None:
        assert numbers(text, self.WHERE) == ranks


@given(size=st.integers(1, 20), part=slices())
def test_slices_of_ranks_are_python_slices(size: int, part: slice) -> None:
    where = world(groups={"job": size})
    assert numbers(f"ranks({spell(part)})", where) == list(range(size))[part]


def test_slices_and_ranges_clip_to_the_ranks_there_are() -> None:
    sparse = World((("job", 0), ("job", 2), ("job", 5)), {}, {}, {})
    assert numbers("0-7", sparse) == [0, 2, 5]
    assert numbers("ranks(1:4)", sparse) == [2]
    assert numbers("ranks(8:)", sparse) == []
    assert numbers("0-999999999", sparse) == [0, 2, 5]
    assert numbers("ranks(0:999999999:5)", sparse) == [0, 5]


def test_ranks_far_apart_cost_nothing_extra() -> None:
    far = World((("job", 0), ("job", 999_999_999)), {}, {}, {})
    assert numbers("ranks(::3) | 0-999999999", far) == [0, 999_999_999]


def test_without_strictness_absent_ranks_and_groups_are_passed_over() -> None:
    assert numbers("1,9", world(), strict=False) == [1]
    text = "eval:0 | eval.ranks(tp=0) | eval:all | job:stopped | 2"
    assert numbers(text, world(), strict=False) == [2]


@pytest.mark.parametrize("text", ["@nobody", "ranks(tp=0)"])
def test_unknown_names_are_errors_even_without_strictness(text: str) -> None:
    with pytest.raises(RankSetError):
        parse(text).select(world(), strict=False)


class TestGroups:
    TWO = world(groups={"trainer": 4, "eval": 2}, default_group="trainer")

    @pytest.mark.parametrize(
        ("text", "ranks"),
        [
            ("0-1", [("trainer", 0), ("trainer", 1)]),
            ("eval:0-1", [("eval", 0), ("eval", 1)]),
            ("eval.ranks(1)", [("eval", 1)]),
            ("trainer:3; eval:0", [("eval", 0), ("trainer", 3)]),
            ("~trainer:all", [("eval", 0), ("eval", 1)]),
            ("all - 0-3 - eval:0", [("eval", 1)]),
        ],
    )
    def test_name_picks_the_group(self, text: str, ranks: list[tuple[str, int]]) -> None:
        assert parse(text).select(self.TWO) == tuple(ranks)

    def test_the_only_group_is_the_default(self) -> None:
        where = world(groups={"trainer": 2})
        assert parse("1").select(where) == (("trainer", 1),)

    def test_plain_numbers_need_a_default_among_several(self) -> None:
        where = world(groups={"trainer": 2, "eval": 2})
        with pytest.raises(RankSetError, match=r"which group\? Write eval:0 or trainer:0"):
            parse("1").select(where)

    def test_an_empty_world_has_nobody(self) -> None:
        empty = World((), {}, {}, {})
        assert parse("all | stopped | 0-3 | ranks(:)").select(empty) == ()
        with pytest.raises(RankSetError, match="no rank 0 in group job: no rank is known yet"):
            parse("0").select(empty)


UNKNOWN = [
    # text, the world, column, part of the message
    ("all & trainr:0", TestGroups.TWO, 6, "no group 'trainr': did you mean trainer"),
    ("ranks(tp=0, ddp=1)", world(mesh="dp=2,tp=4"), 12, "no dimension 'ddp': did you mean dp"),
    ("ranks(tp=(1,4))", world(mesh="dp=2,tp=4"), 12, "no tp=4: tp has 0-3"),
    ("ranks(tp=0)", world(), 6, "no mesh dimensions: --mesh dp=2,tp=4"),
    ("0 | @slwo", world(names={"slow": "1"}), 4, "no set @slwo: did you mean @slow"),
    *(
        (text, world(), text.index("9"), "no rank 9 in group job: it has 0-7")
        for text in ("9", "ranks(9)", "ranks(1,9)", "job:9", "~9")
    ),
]


@pytest.mark.parametrize(("text", "where", "column", "message"), UNKNOWN)
def test_what_is_not_there_is_named_at_its_column(
    text: str, where: World, column: int, message: str
) -> None:
    with pytest.raises(RankSetError, match=message) as caught:
        parse(text).select(where)
    assert caught.value.column == column


class TestMesh:
    def test_ranks_beyond_the_mesh_have_no_coordinates(self) -> None:
        assert numbers("ranks(tp=0)", world(groups={"job": 9}, mesh="dp=2,tp=4")) == [0, 4]

    def test_missing_ranks_are_passed_over(self) -> None:
        assert numbers("ranks(tp=0)", world(groups={"job": 3}, mesh="dp=2,tp=4")) == [0]


class TestNames:
    def test_a_name_that_leads_to_itself(self) -> None:
        with pytest.raises(RankSetError, match="@a is defined in terms of itself"):
            parse("@a").select(world(names={"a": "@b | 0", "b": "~@a"}))

    def test_the_same_name_twice_is_no_cycle(self) -> None:
        assert numbers("@a | @b", world(names={"a": "1", "b": "@a | 2"})) == [1, 2]

    def test_endless_chains_are_cut(self) -> None:
        names = {f"n{i}": f"@n{i + 1}" for i in range(500)}
        with pytest.raises(RankSetError, match="chain of more than 8 names"):
            parse("@n0").select(world(names=names))


@pytest.mark.parametrize(
    ("text", "varies"),
    [
        ("all", False),
        ("0-3,7", False),
        ("ranks(::2)", False),
        ("~(0 | ranks(1)) - 3", False),
        ("stopped", True),
        ("~running", True),
        ("all - stopped", True),
        ("0 & (1 | exited)", True),
        ("@mine", False),
        ("1 | @others", True),
        ("@unknown", False),
        ("@circle | @circle", False),
        ("@n0", True),  # so many that nobody looks further
    ],
)
def test_only_states_vary_in_a_world(text: str, varies: bool) -> None:
    known = {"mine": "0-3", "others": "@running - @mine", "running": "running"}
    chain = {f"n{i}": f"@n{i + 1}" for i in range(50)}
    texts = {**known, **chain, "circle": "0 | @circle"}
    names = {name: parse(text) for name, text in texts.items()}
    assert parse(text).varies_in(names, set()) is varies
