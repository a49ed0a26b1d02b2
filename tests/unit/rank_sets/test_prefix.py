"""Conditions, hit conditions and log messages, with and without ranks at their head."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.rank_sets import RankSetError, parse, split_condition, split_prefix, substitute
from dap_mux.pure.rank_sets.prefix import Prefix
from dap_mux.pure.rank_sets.world import Differ
from tests.unit.rank_sets.worlds import HEADS


@pytest.mark.parametrize(
    ("text", "ranks", "barrier", "rest"),
    [
        ("ranks(tp=0): loss > 3", "ranks(tp=0)", False, "loss > 3"),
        ("ranks(3):5", "3", False, "5"),
        ("  ranks( 1:10:2 ) : %3", "ranks(1:10:2)", False, "%3"),
        ("ranks(tp=2:8, dp=(1,3)): x[1:2]", "ranks(tp=2:8, dp=(1,3))", False, "x[1:2]"),
        ("@slow: True", "@slow", False, "True"),
        ("@slow-ones : {loss}  ", "@slow-ones", False, "{loss}  "),
        ("trainer.ranks(0-3):", "trainer.ranks(0-3)", False, ""),
        ("my-job.ranks(0): a: b", "my-job:0", False, "a: b"),
        ("ranks(0): ranks(1): x", "0", False, "ranks(1): x"),
        ("ranks(0): it's {x}", "0", False, "it's {x}"),
        ("barrier", None, True, ""),
        (" barrier ", None, True, ""),
        ("barrier:", None, True, ""),
        ("barrier: step == 3", None, True, "step == 3"),
        ("ranks(tp=0) barrier: loss > 3", "ranks(tp=0)", True, "loss > 3"),
        ("@slow barrier", "@slow", True, ""),
        ("ranks(0)barrier:", "0", True, ""),
    ],
)
def test_prefixes(text: str, ranks: str | None, barrier: bool, rest: str) -> None:
    assert split_prefix(text) == Prefix(None if ranks is None else parse(ranks), barrier, rest)


@pytest.mark.parametrize(
    ("text", "ranks", "differ", "rest"),
    [
        ("differ: loss", None, Differ(), "loss"),
        (" differ ( dp ) : loss[1:2]", None, Differ(("dp",)), "loss[1:2]"),
        ("ranks(tp=0) differ(dp, pp): x", "ranks(tp=0)", Differ(("dp", "pp")), "x"),
        ("@slow differ:", "@slow", Differ(), ""),
    ],
)
def test_differ(text: str, ranks: str | None, differ: Differ, rest: str) -> None:
    expected = Prefix(None if ranks is None else parse(ranks), False, rest, differ)
    assert split_condition(text) == expected
    assert split_prefix(text).differ is None


@pytest.mark.parametrize(
    "text", ["differ", "differ > 3", "differ(x) > 3", "differ := 3", "differs: x", "barrier: x"]
)
def test_no_differ(text: str) -> None:
    assert split_condition(text) == split_prefix(text)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("differ(): loss", 7, "expected dimensions"),
        ("differ(dp, 3): loss", 10, "expected dimensions"),
        ("differ(tp=0): loss", 7, "expected dimensions"),
    ],
)
def test_differ_that_cannot_be_read(text: str, column: int, message: str) -> None:
    with pytest.raises(RankSetError, match=message) as raised:
        split_condition(text)
    assert raised.value.column == column


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "loss: {loss}",
        "loss > 3",
        "all: {x}",
        "0-3: {x}",
        "stopped: now",
        "job:0-3: x",
        "ranks: {ranks}",
        "ranks(x) > 3",
        "ranks(x)[1:2]",
        "ranks(')') and {1: 2}",
        "ranks('\\\\')', [')'], ''' ')''') > 0",
        "self.model.ranks(3): x",
        "franks(3): x",
        "x = ranks(3): y",
        "trainer.ranks(0) > 1",
        "@decorated thing: x",
        "user@host: {x}",
        "barrier > 3",
        "barrier()",
        "barriers: {x}",
        "barrier := 3",
        "ranks(0) := 3",
        "lambda: 0",
        " {x}: barrier",
    ],
)
def test_the_users_own_text_is_left_alone(text: str) -> None:
    assert split_prefix(text) == Prefix(None, barrier=False, rest=text)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("ranks(tp-0): x > 1", 8, "expected = and coordinates"),
        ("  trainer.ranks(7-3): x", 16, "did you mean 3-7"),
        ("ranks(tp=0: loss > 3", 5, "never closed"),
        ('ranks(")": x', 5, "never closed"),
        ("ranks('): x", 5, "never closed"),
        ("ranks(''' ' ): x", 5, "never closed"),
        ("ranks(0,, 1) barrier", 8, "expected a rank number"),
    ],
)
def test_mistakes_in_a_prefix_point_into_the_whole_text(
    text: str, column: int, message: str
) -> None:
    with pytest.raises(RankSetError, match=message) as caught:
        split_prefix(text)
    assert caught.value.column == column
    assert caught.value.text == text


@given(ranks=HEADS)
def test_every_set_of_the_right_shape_is_found(ranks: str) -> None:
    assert split_prefix(f"{ranks}: x == {{1: 2}}") == Prefix(parse(ranks), False, "x == {1: 2}")


_PARTS = [
    *("ranks(", "job.", "@slow", "barrier", "tp=0", "0-3", "1:2", ")", ":", " ", ","),
    *("'", '"', "'''", "[", "]", "{", "}", "\\", "x", "\n"),
]


@given(text=st.lists(st.sampled_from(_PARTS), max_size=10).map("".join) | st.text())
def test_any_text_splits_or_is_a_rank_set_error(text: str) -> None:
    try:
        prefix = split_prefix(text)
    except RankSetError as error:
        assert error.text == text
        return
    assert text.endswith(prefix.rest)
    assert (prefix.ranks is None and not prefix.barrier) == (prefix.rest == text)


VALUES = {"rank": 3, "world_size": 8, "host": "node1", "dp": 0, "dp_shard": 1, "tp": 2}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x == $rank", "x == 3"),
        ("$rank/$world_size on '$host'", "3/8 on 'node1'"),
        ("$dp_shard$dp", "10"),
        ("$dp-$tp", "0-2"),
        ("$ranks $nobody $ $$tp", "$ranks $nobody $ $2"),
        ("{loss} $rank.", "{loss} 3."),
        ("no names", "no names"),
    ],
)
def test_substitution(text: str, result: str) -> None:
    assert substitute(text, VALUES) == result


def test_values_are_not_looked_at_again() -> None:
    assert substitute("$host \\1", {"host": "$rank\\g<0>", "rank": 1}) == "$rank\\g<0> \\1"


@given(text=st.text())
def test_without_values_nothing_changes(text: str) -> None:
    assert substitute(text, {}) == text
