"""Every mistake is one sentence, a caret at its column, and what to write instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankSet, RankSetError, parse
from tests.unit.rank_sets.worlds import BUSY

MISTAKES = [
    # text, column, part of the message
    ("", 0, "expected a rank set: for example 0-3"),
    ("   ", 3, "expected a rank set"),
    ("0 |", 3, "expected a rank set"),
    ("0 | & 1", 4, "expected a rank set, not '&'"),
    ("stoped", 0, "unknown word 'stoped': did you mean stopped?"),
    ("all - rnning", 6, "did you mean running?"),
    ("not stopped", 0, "for all other ranks write ~"),
    ("all and 3", 4, "for the ranks in both write &"),
    ("tp=0", 0, "dimensions go inside ranks(...), as in ranks(tp=0)"),
    ("0-3 7", 4, "is a comma or an operator missing"),
    ("0-3, all", 5, "expected a rank number, not 'all'"),
    ("stopped, all", 7, "between sets write |"),
    ("0:4", 1, "slices go inside ranks(...)"),
    ("7-3", 0, "7-3 runs backwards: did you mean 3-7?"),
    ("all - 0-3-5", 6, "0-3-5 is not a range"),
    ("0,1, 7-3,4", 5, "7-3 runs backwards"),
    ("0,1-2, 0-3-5", 7, "0-3-5 is not a range"),
    ("0,1,1234567890", 4, "too large for a rank"),
    ("all 4,5", 4, "unexpected '4': is a comma or an operator missing"),
    ("ranks(0 4,5)", 8, "unexpected '4': expected , or ) here"),
    ("ranks(tp=0,1,2)", 11, "expected a dimension, not '1'"),
    ("ranks(tp 4,5)", 9, "expected = and coordinates after 'tp'"),
    ("ranks(1:4:0,1)", 10, "the step of a slice must be 1 or more"),
    ("1234567890", 0, "too large for a rank"),
    ("0-1234567890", 0, "too large for a rank"),
    ("-1", 0, "expected a rank set, not '-'"),
    ("3abc", 1, "unexpected 'abc'"),
    ("*", 0, "for every rank write all"),
    ("0 + 1", 2, "to unite sets write |"),
    ("ranks[0]", 5, "ranks go in parentheses"),
    ("ranks", 5, "ranks needs parentheses"),
    ("ranks 0", 6, "ranks needs parentheses"),
    ("ranks(0", 5, "this parenthesis is never closed"),
    ("0 & (1 | 2", 4, "this parenthesis is never closed"),
    ("0)", 1, "no parenthesis is open here"),
    ("ranks(1:4:0)", 10, "the step of a slice must be 1 or more"),
    ("ranks(-1)", 6, "expected a rank number, not '-'"),
    ("ranks(0,)", 8, "expected a rank number, not ')'"),
    ("ranks(0 1)", 8, "expected , or ) here"),
    ("ranks(0-3:2)", 9, "expected , or ) here"),
    ("ranks(0-3, tp=0)", 11, "write ranks(...) & ranks(tp=...)"),
    ("ranks(tp=0, 3)", 12, "several places of one are dp=(1,3)"),
    ("ranks(tp=0,)", 11, "expected a dimension"),
    ("ranks(tp 0)", 9, "expected = and coordinates after 'tp'"),
    ("ranks(tp=)", 9, "expected a rank number, not ')'"),
    ("ranks(tp=(1,3)", 5, "this parenthesis is never closed"),
    ("ranks(tp=(1;3))", 11, "expected , or ) here"),
    ("ranks(tp=0, dp=1, tp=2)", 18, "the dimension tp is given twice"),
    ("trainer", 0, "unknown word 'trainer'"),
    ("trainer.stopped", 8, "after a group's dot comes ranks(...)"),
    ("trainer:", 8, "after a group's colon come ranks"),
    ("trainer:ranks(0)", 8, "after a group's colon come ranks"),
    ("@", 0, "a name follows it, as in @slow"),
    ("0 | é€", 5, "unexpected '€' in a rank set"),
    ("(" * 17 + "0" + ")" * 17, 16, "more than 16 levels"),
    ("0|" * 600 + "0", 1024, "more than 512 sets"),
    ("~" * 4000 + "0", 16, "more than 16 levels"),
]


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_mistake_is_explained_at_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(RankSetError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.column == column
    assert caught.value.text == text


def test_message_shows_the_text_and_a_caret_under_the_word() -> None:
    with pytest.raises(UsageError) as caught:
        parse("ranks(ddp=0) - 3").select(BUSY)
    assert str(caught.value).splitlines() == [
        "no dimension 'ddp': did you mean dp?",
        "  ranks(ddp=0) - 3",
        "        ^^^",
    ]


def test_caret_follows_the_end_of_the_text() -> None:
    with pytest.raises(RankSetError) as caught:
        parse("0 |")
    assert str(caught.value).splitlines()[1:] == ["  0 |", "     ^"]


def test_long_texts_are_quoted_around_the_mistake() -> None:
    with pytest.raises(RankSetError) as caught:
        parse("0 | " * 400 + "oops" + " | 0" * 400)
    _, quoted, carets = str(caught.value).splitlines()
    assert len(quoted) < 80
    assert quoted[carets.index("^") :].startswith("oops")
    assert caught.value.column == 1600


def test_control_characters_never_reach_the_terminal() -> None:
    with pytest.raises(RankSetError) as caught:
        parse("0 |\x1b[2J\n oops")
    assert str(caught.value).count("\n") == 2
    assert "\x1b" not in str(caught.value)


NEARLY = st.lists(
    st.sampled_from(
        [
            *(" ", "0", "3", "12", "0-3", "7-3", "1-2-3", "1234567890", "tp", "dp", "tp="),
            *("-", "--", "|", "&", "~", ";", ",", ":", ".", "=", "(", ")", "()", "{", "'", "\\"),
            *("ranks", "ranks(", "@", "@slow", "all", "stopped", "job", "job:", "job.ranks("),
            *("\n", "\x00", "\ud800", "é", "٣", "$rank"),
        ]
    ),
    max_size=12,
).map("".join)


@given(text=NEARLY | st.text(max_size=30))
def test_any_text_is_a_rank_set_or_a_rank_set_error(text: str) -> None:
    try:
        ranks = parse(text)
    except RankSetError as error:
        assert 0 <= error.column <= len(text)
        assert len(str(error).splitlines()) == 3
        return
    assert isinstance(ranks, RankSet)
    assert parse(str(ranks)) == ranks
    try:
        assert set(ranks.select(BUSY)) <= set(BUSY.ranks)
    except RankSetError as error:
        assert error.text == text


@given(depth=st.integers(1, 16), operator=st.sampled_from("|&-"))
def test_nesting_within_the_limit_is_fine(depth: int, operator: str) -> None:
    text = f"(3 {operator} " * depth + "3" + ")" * depth
    assert set(parse(text).select(BUSY)) <= {("job", 3)}
