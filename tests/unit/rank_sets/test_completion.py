"""What is offered at a column: only what parses there and means something in this session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.rank_sets import STATES, Mesh, RankSetError, World, complete, parse
from tests.unit.rank_sets.worlds import world

WHERE = World(
    ranks=(*(("job", rank) for rank in range(8)), ("my-eval", 0), ("my-eval", 1)),
    meshes={"job": Mesh.parse("dp=2,tp=4"), "my-eval": Mesh.parse("pp=2")},
    states={},
    names={"slow": parse("3"), "slower-ones": parse("@slow")},
)


def offered(text: str, where: World = WHERE) -> list[str]:
    return [one.text for one in complete(text, len(text), where)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r", ["ranks(", "running"]),
        ("stopped | ex", ["exited"]),
        ("all-sto", ["stopped"]),
        ("~l", ["lost"]),
        ("@sl", ["@slow", "@slower-ones"]),
        ("my", ["my-eval:", "my-eval.ranks("]),
        ("my-ev", ["my-eval:", "my-eval.ranks("]),
        ("my-eval:", ["all", *STATES]),
        ("ranks(", ["dp=", "tp="]),
        ("my-eval.ranks(", ["pp="]),
        ("ranks(dp=0, ", ["tp="]),
        ("0-3 & (lost | ranks(t", ["tp="]),
        ("ranks(tp=", ["0", "1", "2", "3"]),
        ("ranks(tp=(0,", ["0", "1", "2", "3"]),
        ("ranks(dp=1", ["1"]),
        ("ranks(pp=", []),
        ("ranks(0,", []),
        ("all s", []),
        ("ranks(0:4) ", []),
        ("0-3", []),
        ("stoped & ", []),
    ],
)
def test_offered(text: str, words: list[str]) -> None:
    assert offered(text) == words


def test_an_empty_text_offers_every_kind_of_set() -> None:
    assert {"all", "ranks(", "stopped", "@slow", "job:", "my-eval.ranks("} <= set(offered(""))
    assert "dp=" not in offered("")


def test_a_name_that_means_nothing_does_not_end_the_help() -> None:
    assert offered("@slwo | sto") == ["stopped"]


def test_a_hyphen_may_belong_to_a_name_and_that_comes_first() -> None:
    assert offered("@slower-")[:2] == ["@slower-ones", "all"]


def test_only_what_is_before_the_column_counts() -> None:
    (one,) = complete("0 | stop & tp=0)", 8, WHERE)
    assert (one.text, one.start) == ("stopped", 4)
    assert one.detail == "ranks that are stopped now"


def test_a_wide_dimension_is_not_offered_whole() -> None:
    wide = world(groups={"job": 1000}, mesh="dp=1000")
    assert len(offered("ranks(dp=", wide)) == 64
    assert offered("ranks(dp=63", wide) == ["63"]


FRAGMENTS = st.lists(
    st.sampled_from(
        [*"(),:;|&~-=@. ", "ranks(", "tp=", "dp=", "all", "0", "0-3", "sto", "my-eval", "@slow"]
    ),
    max_size=8,
).map("".join)


@given(text=FRAGMENTS)
def test_every_offer_continues_the_text_and_parses_when_made_whole(text: str) -> None:
    for one in complete(text, len(text), WHERE):
        typed = text[one.start :]
        assert one.text.startswith(typed)
        whole = text[: one.start] + one.text
        whole += {"=": "0", ":": "all"}.get(whole[-1], "")
        whole += ")" * (whole.count("(") - whole.count(")"))
        parse(whole)  # raises where it is none


@given(text=st.text(max_size=12), column=st.integers(0, 14))
def test_any_text_is_survived(text: str, column: int) -> None:
    for one in complete(text, column, WHERE):
        with_it = text[: one.start] + one.text
        assert with_it.startswith(text[: one.start])


def test_what_is_never_finished_is_an_error_still() -> None:
    with pytest.raises(RankSetError):
        parse("ranks(tp=")
