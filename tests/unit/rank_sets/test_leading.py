"""Where the ranks in front of a command end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.rank_sets import RankSetError, fold, parse, split_leading, with_group


@pytest.mark.parametrize(
    ("text", "ranks", "command"),
    [
        ("ranks(0:4) p loss", "ranks(0:4)", "p loss"),
        ("ranks(0,1) n", "ranks(0,1)", "n"),
        ("ranks( hosts=2:, gpus=1: )  c ", "ranks( hosts=2:, gpus=1: )", "c"),
        ("debugee ranks(2:7:2) s", "debugee.ranks(2:7:2)", "s"),
        ("debugee 13 p x", "debugee:13", "p x"),
        ("my-job 0-3,7 n", "my-job:0-3,7", "n"),
        ("all p x", "all", "p x"),
        ("all 3", "all", "3"),
        ("stopped - 3 up", "stopped - 3", "up"),
        ("0-3,7 f(a, b)", "0-3,7", "f(a, b)"),
        ("(0 | 2) & stopped !x = 1", "(0 | 2) & stopped", "!x = 1"),
        ("@slow [1 for x in y]", "@slow", "[1 for x in y]"),
        ("trainer.ranks(0) w", "trainer.ranks(0)", "w"),
        ("1 - 2", "1", "- 2"),
        ("0 'a ( b'", "0", "'a ( b'"),
    ],
)
def test_the_ranks_and_the_command(text: str, ranks: str, command: str) -> None:
    assert split_leading(text) == (ranks, command)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "", 0),
        ("ranks(0:4)", "a command must follow", 10),
        ("0-3,7", "a command must follow", 5),
        ("ranks(0:4 p loss", "", 10),
        ("debugee ranks(tp=) n", "", 17),
        ("p loss", "", 0),
        ("13: n", "", 2),
    ],
)
def test_what_is_wrong_and_where(text: str, message: str, column: int) -> None:
    with pytest.raises(RankSetError) as caught:
        split_leading(text)
    assert message in caught.value.message
    assert caught.value.column == column


def test_monarchs_name_is_a_group() -> None:
    assert with_group("debugee ranks(3)") == "debugee.ranks(3)"
    assert with_group("debugee   13") == "debugee:  13"
    assert with_group("stopped 13") == "stopped 13"
    assert str(parse(with_group("debugee   13"))) == str(parse("debugee:13"))


@given(st.sets(st.integers(0, 99), min_size=1), st.sampled_from(["n", "p x", "!y = (1)", "l 3, 4"]))
def test_folded_ranks_and_a_command_come_apart(ranks: set[int], command: str) -> None:
    text = fold(("job", rank) for rank in ranks)
    assert split_leading(f"{text} {command}") == (text, command)


@given(st.text(max_size=60))
def test_any_text_gives_both_parts_or_an_error_with_a_column(text: str) -> None:
    try:
        ranks, command = split_leading(text)
    except RankSetError as error:
        assert 0 <= error.column <= len(error.text)
    else:
        parse(ranks)
        assert command
