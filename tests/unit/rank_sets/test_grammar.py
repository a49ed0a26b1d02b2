"""Each line of the grammar, by what it selects of eight ranks and by its canonical text."""

from __future__ import annotations

import pytest
from hypothesis import given

from dap_mux.pure.rank_sets import STATES, is_name, parse
from tests.unit.rank_sets.worlds import BUSY, RANK_SETS, numbers, world

EIGHT = world(
    mesh="pp=2,dp=2,tp=2",
    states={0: "stopped", 1: "stopped", 2: "running", 7: "lost"},
    names={"slow": "2,5", "slow-ones": "6", "nested": "@slow | 0"},
)

LINES = [
    # text, ranks, canonical text
    ("3", [3], "3"),
    (" ranks ( 3 ) ", [3], "3"),
    ("ranks(1,3,5)", [1, 3, 5], "1,3,5"),
    ("ranks(1:10:2)", [1, 3, 5, 7], "ranks(1:10:2)"),
    ("ranks(:)", list(range(8)), "ranks(:)"),
    ("ranks(6:)", [6, 7], "ranks(6:)"),
    ("ranks(:2)", [0, 1], "ranks(:2)"),
    ("ranks(::3)", [0, 3, 6], "ranks(::3)"),
    ("ranks(5:2)", [], "ranks(5:2)"),
    ("ranks(0, 4:6, 6-7)", [0, 4, 5, 6, 7], "ranks(0,4:6,6-7)"),
    ("ranks()", list(range(8)), "ranks()"),
    ("ranks(tp=0)", [0, 2, 4, 6], "ranks(tp=0)"),
    ("ranks(pp=1, tp=0)", [4, 6], "ranks(pp=1, tp=0)"),
    ("ranks(tp=1, pp=0)", [1, 3], "ranks(tp=1, pp=0)"),
    ("ranks(pp=1, dp=(0,1), tp=1:8)", [5, 7], "ranks(pp=1, dp=(0,1), tp=1:8)"),
    ("ranks(dp=0-1,tp=(1))", [1, 3, 5, 7], "ranks(dp=0-1, tp=1)"),
    ("ranks(tp=:)", list(range(8)), "ranks(tp=:)"),
    ("0-3,7", [0, 1, 2, 3, 7], "0-3,7"),
    ("0-1 , 07", [0, 1, 7], "0-1,7"),
    ("all", list(range(8)), "all"),
    ("stopped", [0, 1], "stopped"),
    ("running", [2], "running"),
    ("lost", [7], "lost"),
    ("exited", [], "exited"),
    ("@slow", [2, 5], "@slow"),
    ("@nested", [0, 2, 5], "@nested"),
    ("@slow-ones", [6], "@slow-ones"),
    ("job.ranks(0:2)", [0, 1], "job.ranks(0:2)"),
    ("job.ranks(tp=0)", [0, 2, 4, 6], "job.ranks(tp=0)"),
    ("job:0-3,5", [0, 1, 2, 3, 5], "job:0-3,5"),
    ("job:stopped", [0, 1], "job:stopped"),
    ("job:all", list(range(8)), "job:all"),
    ("stopped & ranks(tp=0)", [0], "stopped & ranks(tp=0)"),
    ("stopped|lost", [0, 1, 7], "stopped | lost"),
    ("0; 3", [0, 3], "0 | 3"),
    ("~0-3", [4, 5, 6, 7], "~0-3"),
    ("~~stopped", [0, 1], "~~stopped"),
    ("~(0 | 7)", [1, 2, 3, 4, 5, 6], "~(0 | 7)"),
]


@pytest.mark.parametrize(("text", "ranks", "canonical"), LINES)
def test_line_of_the_grammar(text: str, ranks: list[int], canonical: str) -> None:
    assert numbers(text, EIGHT) == ranks
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("0-3", [0, 1, 2, 3]),
        ("5 - 3", [5]),
        ("5 -3", [5]),
        ("5- 5", []),
        ("all - 0-3", [4, 5, 6, 7]),
        ("all-0-3", [4, 5, 6, 7]),
        ("all-stopped", [2, 3, 4, 5, 6, 7]),
        ("all - 0-3,7", [4, 5, 6]),
        ("0-7 - 1 - 2", [0, 3, 4, 5, 6, 7]),
        ("0-7 - (1 - 2)", [0, 2, 3, 4, 5, 6, 7]),
        ("@slow - 2", [5]),
        ("~0-@slow", [1, 3, 4, 6, 7]),
    ],
)
def test_minus_is_a_range_between_numbers_and_a_difference_elsewhere(
    text: str, ranks: list[int]
) -> None:
    assert numbers(text, EIGHT) == ranks


@pytest.mark.parametrize(
    ("text", "bracketed"),
    [
        ("0 | 1 & 2", "0 | (1 & 2)"),
        ("0-3 & 1 - 1", "0-3 & (1 - 1)"),
        ("4-7 - 5-7 & 5", "(4-7 - 5-7) & 5"),
        ("~0 | 1", "(~0) | 1"),
        ("~0 - 1", "(~0) - 1"),
        ("0; 1 & 2", "0; (1 & 2)"),
    ],
)
def test_operators_bind_as_in_python(text: str, bracketed: str) -> None:
    assert parse(text) == parse(bracketed)


@given(text=RANK_SETS)
def test_canonical_text_parses_back(text: str) -> None:
    ranks = parse(text)
    assert parse(str(ranks)) == ranks
    assert hash(parse(str(ranks))) == hash(ranks)


@given(a=RANK_SETS, b=RANK_SETS, c=RANK_SETS)
def test_laws_of_sets(a: str, b: str, c: str) -> None:
    def same(left: str, right: str) -> bool:
        return numbers(left, BUSY) == numbers(right, BUSY)

    assert same(f"({a}) | ({b})", f"({b}) | ({a})")
    assert same(f"({a}) & ({b})", f"({b}) & ({a})")
    assert same(f"({a}) & (({b}) | ({c}))", f"({a}) & ({b}) | ({a}) & ({c})")
    assert same(f"~(({a}) | ({b}))", f"~({a}) & ~({b})")
    assert same(f"({a}) - ({b})", f"({a}) & ~({b})")
    assert same(f"~~({a})", f"({a})")
    assert same(f"({a}) | ~({a})", "all")
    assert same(f"({a}) & ~({a})", "all - all")


def test_operators_agree_with_python_sets() -> None:
    left, right = {0, 1, 2, 3}, {2, 3, 4, 7}
    assert numbers("0-3 | 2-4,7", EIGHT) == sorted(left | right)
    assert numbers("0-3 & 2-4,7", EIGHT) == sorted(left & right)
    assert numbers("0-3 - 2-4,7", EIGHT) == sorted(left - right)


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_a_word(state: str) -> None:
    where = world(states={2: state, 5: state})
    assert numbers(state, where) == [2, 5]


def test_long_chains_need_no_deep_recursion() -> None:
    text = " | ".join(str(rank) for rank in range(8)) + " | 0" * 500
    assert numbers(text, EIGHT) == list(range(8))
    assert len(str(parse(text))) == len(text)


@pytest.mark.parametrize("name", ["trainer", "my-job", "a_1", "gpu-0-west"])
def test_names_of_groups_and_sets(name: str) -> None:
    assert is_name(name)
    assert numbers(f"{name}:1 | {name}.ranks(0)", world(groups={name: 2})) == [0, 1]
    assert numbers(f"@{name}", world(names={name: "2"})) == [2]


@pytest.mark.parametrize("name", ["", "0a", "-a", "a-", "a b", "a.b", "a:b", "a--b", "a\n"])
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)
