"""Output of many ranks: lines are whole, in order, folded, and nothing is lost."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.engine.session.rank_output import MAX_HELD, Folded, OutputFolder, Ranks
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId, label

R: Final[list[RankId]] = [("job", number) for number in range(4)]
PLACE: Final = {"line": 3, "source": {"path": "/a.py"}}
OURS: Final = ()  # the ranks of a newline that no rank printed


def fed(*pieces: tuple[int, str], folder: OutputFolder | None = None) -> OutputFolder:
    """Return a folder that was given `(rank, text)` pieces of stdout."""
    folder = folder or OutputFolder()
    for number, text in pieces:
        folder.add(R[number], "stdout", text, {})
    return folder


def due(folder: OutputFolder) -> list[Folded]:
    """Let a whole window pass: two ticks."""
    return [*folder.flush(), *folder.flush()]


def texts(sent: list[Folded]) -> list[str]:
    """Return only what is shown."""
    return [body["output"] for body, _ in sent]


def stdout(text: str, *numbers: int) -> Folded:
    """Return a plain stdout body of these ranks."""
    return {"category": "stdout", "output": text}, tuple(R[number] for number in numbers)


def test_pieces_become_a_line_with_its_rank() -> None:
    folder = fed((3, "hello"), (3, " "), (3, "2"), (3, "\n"))
    assert due(folder) == [stdout("[3] hello 2\n", 3)]
    assert not folder.pending


def test_equal_lines_fold() -> None:
    assert due(fed((2, "a\n"), (0, "a\n"), (1, "a\n"))) == [stdout("[0-2] a\n", 0, 1, 2)]


def test_different_lines_do_not_fold_and_neighbours_share_a_body() -> None:
    assert due(fed((0, "a\nb\n"), (1, "c\n"))) == [
        stdout("[0] a\n[0] b\n", 0),
        stdout("[1] c\n", 1),
    ]


def test_a_line_said_twice_stands_twice() -> None:
    assert texts(due(fed((0, "a\na\n"), (1, "a\n")))) == ["[0-1] a\n", "[0] a\n"]


def test_a_line_never_folds_in_front_of_what_its_rank_said_before() -> None:
    assert texts(due(fed((0, "a\n"), (1, "b\n"), (1, "a\n"), (0, "b\n")))) == [
        "[0] a\n",
        "[0-1] b\n",
        "[1] a\n",
    ]


def test_a_line_waits_half_a_window_at_least_and_a_whole_one_at_most() -> None:
    folder = OutputFolder(0.05)
    assert folder.tick == 0.025
    fed((0, "a\n"), folder=folder)
    assert folder.flush() == []
    assert folder.pending
    fed((0, "b\n"), (1, "a\n"), folder=folder)
    assert folder.flush() == [stdout("[0-1] a\n", 0, 1)]
    assert folder.flush() == [stdout("[0] b\n", 0)]
    assert not folder.pending


def test_everything_is_due_at_the_end() -> None:
    folder = fed((0, "a\nb"), (1, "a\n"))
    assert folder.flush(everything=True) == [stdout("[0-1] a\n", 0, 1), stdout("[0] b", 0)]
    assert not folder.pending


def test_at_a_stop_all_lines_are_due_and_pieces_of_who_has_stopped() -> None:
    folder = fed((0, "a\nb"), (1, "a\nc"), (2, "d\n"))
    assert folder.flush(said_by={R[0]}) == [
        stdout("[0-1] a\n", 0, 1),
        stdout("[2] d\n", 2),
        stdout("[0] b", 0),
    ]
    assert folder.pending
    fed((1, "\n"), folder=folder)
    assert due(folder) == [stdout("\n", *OURS), stdout("[1] c\n", 1)]


def test_categories_are_kept_apart() -> None:
    folder = fed((0, "out"))
    folder.add(R[0], "stderr", "err\n", {})
    fed((0, "put\n"), folder=folder)
    assert due(folder) == [
        ({"category": "stderr", "output": "[0] err\n"}, (R[0],)),
        stdout("[0] output\n", 0),
    ]


def test_an_absent_category_stays_absent() -> None:
    folder = OutputFolder()
    folder.add(R[0], "", "a\n", {})
    assert due(folder) == [({"output": "[0] a\n"}, (R[0],))]


class TestPartialLines:
    """`input("name? ")` must be seen, and must not be torn for nothing."""

    def test_its_rest_has_more_time_than_a_line_has_for_its_likes(self) -> None:
        folder = OutputFolder(0.05, 0.1)
        fed((1, "name"), (0, "a\n"), folder=folder)
        assert due(folder) == [stdout("[0] a\n", 0)]
        fed((1, "? "), folder=folder)
        assert folder.flush() == []
        assert folder.flush() == [stdout("[1] name? ", 1)]
        assert not folder.pending

    def test_it_is_shown_after_its_window_and_continued_without_prefix(self) -> None:
        folder = fed((1, "name? "))
        assert folder.flush() == []
        assert folder.flush() == [stdout("[1] name? ", 1)]
        assert not folder.pending
        assert due(fed((1, "bob\nb\n"), folder=folder)) == [stdout("bob\n[1] b\n", 1)]

    def test_another_rank_gets_a_line_of_its_own(self) -> None:
        folder = fed((1, "name? "))
        assert len(due(folder)) == 1
        assert due(fed((0, "a\n"), folder=folder)) == [stdout("\n", *OURS), stdout("[0] a\n", 0)]
        assert due(fed((1, "bob\n"), folder=folder)) == [stdout("[1] bob\n", 1)]

    def test_another_category_too_and_the_newline_is_of_the_unfinished_one(self) -> None:
        folder = fed((1, "name? "))
        assert len(due(folder)) == 1
        folder.add(R[1], "stderr", "a\n", {})
        assert due(folder)[0] == stdout("\n", *OURS)

    def test_equal_pieces_fold_and_go_on_folded(self) -> None:
        folder = fed((0, "go? "), (1, "go? "))
        assert due(folder) == [stdout("[0-1] go? ", 0, 1)]
        assert due(fed((0, "yes\n"), (1, "yes\n"), folder=folder)) == [stdout("yes\n", 0, 1)]

    def test_of_a_rank_that_is_gone(self) -> None:
        folder = fed((0, "half"), (1, "half"))
        folder.close(R[0])
        fed((0, "new\n"), folder=folder)
        assert texts(folder.flush(everything=True)) == ["[0] half", "\n", "[0] new\n", "[1] half"]

    def test_shown_already_of_a_rank_that_is_gone(self) -> None:
        folder = fed((0, "half"))
        assert len(due(folder)) == 1
        folder.close(R[0])
        assert texts(due(fed((0, "new\n"), folder=folder))) == ["\n", "[0] new\n"]

    def test_a_carriage_return_ends_no_line(self) -> None:
        assert texts(due(fed((0, "\r10%\r20%\x0b\u2028"), (0, "\n")))) == [
            "[0] \r10%\r20%\x0b\u2028\n"
        ]


class TestOtherFields:
    """Bodies that carry more than text stay what they are."""

    def test_they_pass_in_order_with_a_prefix(self) -> None:
        folder = fed((0, "a\n"), (0, "half"))
        folder.add(R[0], "stdout", "{x: 1}", {"variablesReference": 7})
        fed((0, "b\n"), folder=folder)
        tree = {"category": "stdout", "output": "[0] {x: 1}", "variablesReference": 7}
        assert due(folder) == [
            stdout("[0] a\n[0] half", 0),
            stdout("\n", *OURS),
            (tree, (R[0],)),
            stdout("[0] b\n", 0),
        ]

    def test_they_do_not_fold(self) -> None:
        folder = OutputFolder()
        for rank in R[:2]:
            folder.add(rank, "stdout", "a\n", {**PLACE, "data": {"k": 1}})
        assert texts(due(folder)) == ["[0] a\n", "[1] a\n"]

    def test_lines_of_a_logpoint_fold_and_keep_their_place(self) -> None:
        folder = fed((2, "a\n"))
        for rank in R[:3]:
            folder.add(rank, "stdout", "a\n", {**PLACE, "variablesReference": 0})
        body = {"category": "stdout", "output": "[0-2] a\n", "variablesReference": 0, **PLACE}
        assert due(folder) == [stdout("[2] a\n", 2), (body, tuple(R[:3]))]

    def test_every_line_of_theirs_has_its_prefix(self) -> None:
        folder = OutputFolder()
        folder.add(R[0], "console", "a\nb", {"data": {"k": 1}})
        assert texts(due(folder)) == ["[0] a\n[0] b"]

    def test_a_group_end_without_text_stays_without(self) -> None:
        folder = OutputFolder()
        folder.add(R[0], "console", "", {"group": "end"})
        assert due(folder) == [({"category": "console", "output": "", "group": "end"}, (R[0],))]

    def test_fields_that_say_nothing_do_not_hinder(self) -> None:
        folder = OutputFolder()
        for rank in R[:2]:
            folder.add(rank, "stdout", "a\n", {"source": {}, "variablesReference": 0, "line": None})
        assert due(folder) == [stdout("[0-1] a\n", 0, 1)]


class TestOneRank:
    """With one rank what debugpy sends is what the client gets."""

    def test_at_once_and_unchanged(self) -> None:
        folder = OutputFolder()
        folder.plain = True
        assert not folder.urgent
        folder.add(R[0], "stdout", "hello", {"source": {}, "line": 0})
        assert folder.urgent
        body = {"category": "stdout", "output": "hello", "source": {}, "line": 0}
        assert folder.flush() == [(body, (R[0],))]
        folder.add(R[0], "stderr", "e", {})
        folder.add(R[0], "stdout", " 2\n", {})
        assert texts(folder.flush()) == ["e", " 2\n"]

    def test_what_was_held_goes_first(self) -> None:
        folder = fed((0, "a\nb"), (1, "c"))
        folder.plain = True
        fed((0, "d\n"), folder=folder)
        assert texts(folder.flush()) == ["[0] a\n[0] b", "d\n", "[1] c"]

    def test_a_second_rank_does_not_write_into_its_line(self) -> None:
        folder = OutputFolder()
        folder.plain = True
        fed((0, "half"), folder=folder)
        assert texts(folder.flush()) == ["half"]
        folder.plain = False
        assert texts(due(fed((1, "a\n"), folder=folder))) == ["\n", "[1] a\n"]


class TestMemory:
    """A flood is shown early, not stored."""

    @pytest.mark.parametrize("text", ["x" * 1000 + "\n", "\n", "x", "x" * 1000])
    def test_beyond_a_mebibyte_a_flush_is_urgent_and_empties(self, text: str) -> None:
        folder = OutputFolder()
        count = 0
        while not folder.urgent:
            fed((count % 4, text), folder=folder)
            count += 1
        assert count * len(text) <= 4 * MAX_HELD  # each line at most folded of four
        sent = folder.flush()
        assert not folder.urgent
        assert not folder.pending
        assert content(shown_pieces(sent))[R[0], "stdout"].count("x") == text.count("x") * len(
            range(0, count, 4)
        )

    def test_a_text_of_two_million_lines_is_held_as_one(self) -> None:
        folder = fed((0, "a" + "\n" * 2_000_000 + "b"))
        assert folder.urgent
        assert texts(folder.flush())[0].startswith("[0] a\n[0] \n[0] \n")


Pieces = list[tuple[DebuggeeId, str, str]]  # rank, category, text


def shown_pieces(sent: list[Folded]) -> Pieces:
    """Undo prefixes and folding: who was shown to say what; checks each prefix on the way."""
    pieces: Pieces = []
    unfinished: tuple[Ranks, str] | None = None
    for body, ranks in sent:
        text, category = body["output"], body["category"]
        if ranks == OURS:
            assert unfinished is not None
            assert (text, category) == ("\n", unfinished[1])
            unfinished = None
            continue
        for line in re.findall(r"[^\n]*\n|[^\n]+", text):
            continued = unfinished == (ranks, category)
            assert continued or unfinished is None
            said = line if continued else without(f"[{label(ranks)}] ", line)
            pieces += [(rank, category, said) for rank in ranks]
            unfinished = None if line.endswith("\n") else (ranks, category)
    return pieces


def without(prefix: str, line: str) -> str:
    assert line.startswith(prefix), (prefix, line)
    return line.removeprefix(prefix)


def content(pieces: Pieces) -> dict[tuple[DebuggeeId, str], str]:
    """Return the whole text of each rank and category."""
    whole: dict[tuple[DebuggeeId, str], str] = defaultdict(str)
    for rank, category, text in pieces:
        whole[rank, category] += text
    return {key: text for key, text in whole.items() if text}


ranks = st.sampled_from(R)
categories = st.sampled_from(["stdout", "stderr"])
chunks = st.text("ab\n\r", max_size=6)
FLUSH: Final = "flush"
steps = st.lists(
    st.tuples(ranks, categories, chunks)
    | st.sampled_from([FLUSH, "flush everything"])
    | ranks.map(lambda rank: ("close", rank)),
    max_size=60,
)


@given(steps)
def test_no_rank_loses_or_reorders_a_character(steps: list[Any]) -> None:
    folder = OutputFolder()
    said: Pieces = []
    sent: list[Folded] = []
    for step in steps:
        match step:
            case "flush" | "flush everything":
                sent += folder.flush(everything=step != FLUSH)
            case "close", rank:
                folder.close(rank)
            case rank, category, text:
                said.append((rank, category, text))
                folder.add(rank, category, text, {})
    sent += due(folder)
    assert not folder.pending
    assert content(shown_pieces(sent)) == content(said)


@given(st.lists(st.tuples(ranks, categories, st.sampled_from(["a\n", "b\n", "\n"]))))
def test_whole_lines_of_a_rank_keep_their_order_across_categories(said: Pieces) -> None:
    folder = OutputFolder()
    for rank, category, text in said:
        folder.add(rank, category, text, {})
    shown = shown_pieces(due(folder))
    for rank in R:
        assert [p for p in shown if p[0] == rank] == [p for p in said if p[0] == rank]


@given(st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=12), st.data())
def test_ranks_that_say_the_same_are_shown_once(lines: list[str], data: st.DataObject) -> None:
    """However their lines interleave within a window."""
    order = data.draw(st.permutations([number for number in range(4) for _ in lines]))
    left = {number: iter(lines) for number in range(4)}
    folder = fed(*((number, next(left[number])) for number in order))
    expected = "".join(f"[0-3] {line}" for line in lines)
    assert "".join(texts(due(folder))) == expected
