"""However long or odd a text is, reading it is little work: everybody else waits meanwhile.

Work is counted, not timed: calls of functions, and how often the parser starts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from dap_mux.engine.debug_console import evaluate as console
from dap_mux.engine.debug_console.completions import hints
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import (
    Mesh,
    RankSetError,
    World,
    complete,
    parse,
    split_leading,
    split_prefix,
)
from dap_mux.pure.rank_sets.tokens import MAX_CHARS

RANKS: Final = tuple(("job", number) for number in range(64))
WORLD: Final = World(
    ranks=RANKS,
    meshes={"job": Mesh((("dp", 8), ("tp", 8)))},
    states=dict.fromkeys(RANKS, "stopped"),
    names={f"n{number}": parse("0-3") for number in range(500)},
    default_group="job",
)
PIECES: Final = {
    "numbers": ("1,", "1"),
    "unions": ("1|", "1"),
    "differences": ("1 - ", "1"),
    "every rank": ("all|", "all"),
    "spaces": ("1 ", "x"),
    "one word": ("a", ""),
    "hyphens": ("a-", "a"),
    "open": ("(", ""),
    "complements": ("~ ", "0"),
    "slices": ("ranks(1:1)|", "0"),
    "dimensions": ("tp=(1,", "0"),
    "names": ("@a ", "x"),
    "ranges": ("0-9 ", "x"),
    "brackets": ("([", "x"),
    "strings": ("ranks('\"", "x"),
    "blanks": (" ", "x"),
    "barriers": ("barrier ", "x"),
}


def text_of(kind: str, length: int) -> str:
    piece, end = PIECES[kind]
    return piece * (length // len(piece)) + end


def work(call: Callable[[], object]) -> int:
    """How many functions, Python's own too, are called."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        call()
    except UsageError:
        pass
    finally:
        sys.setprofile(None)
    return count


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "parse": parse,
    "leading": split_leading,
    "prefix": split_prefix,
    "prefix inside": lambda text: split_prefix(f"ranks({text}): x"),
    "completion": lambda text: complete(text, len(text), WORLD),
    "hints": lambda text: hints(f"cast {text}", WORLD),
    "hints of ranks": lambda text: hints(f"ranks(0) {text}", WORLD),
    "words": lambda text: console.read(f"cast {text}", "repl"),
    "percent": lambda text: console.read(f"%cast {text}", "repl"),
    "watch": lambda text: console.read(f"ranks({text}) loss", "watch"),
}
each_kind = pytest.mark.parametrize("kind", PIECES)
each_reader = pytest.mark.parametrize("reader", READERS)


@each_reader
@each_kind
def test_the_work_is_bounded(reader: str, kind: str) -> None:
    """A hundred times the longest text is no more work than that one."""
    whole = work(lambda: READERS[reader](text_of(kind, MAX_CHARS - 64)))
    assert whole < 30 * MAX_CHARS
    assert work(lambda: READERS[reader](text_of(kind, 100 * MAX_CHARS))) <= whole + 2 * MAX_CHARS


@each_reader
@each_kind
def test_the_work_is_linear(reader: str, kind: str) -> None:
    """Four times the text is about four times the work, not sixteen times."""
    short = work(lambda: READERS[reader](text_of(kind, 1000)))
    assert work(lambda: READERS[reader](text_of(kind, 4000))) <= 5 * short + 500


@pytest.mark.parametrize("text", ["1," * 2000 + "1", f"ranks({'1,' * 2000}1)"])
def test_a_list_of_numbers_is_one_token(text: str) -> None:
    """Some calls for each number, also to find its rank, and no dozens."""
    assert work(lambda: parse(text).select(WORLD)) < 4 * len(text)


@each_reader
def test_nothing_is_looked_at_again_and_again(reader: str) -> None:
    """A million blanks are passed over once: no pattern tries all of their parts."""
    for text in ("ranks(0)" + " " * 1_000_000 + "x", "%" + " " * 1_000_000, "a" * 1_000_000):
        work(lambda text=text: READERS[reader](text))  # type: ignore[misc]


def test_what_is_too_long_is_said() -> None:
    with pytest.raises(RankSetError, match="4,096 characters at most"):
        parse("1," * MAX_CHARS + "1")
    assert parse("1," * (MAX_CHARS // 2 - 1) + "1").select(WORLD) == (("job", 1),)


def test_names_that_lead_to_names() -> None:
    """Each is worked out once, however often the others name it."""
    names = {"n0": parse("0-3")}
    for depth in range(1, 8):
        names[f"n{depth}"] = parse(" | ".join([f"@n{depth - 1}"] * 400))
    world = World(
        ranks=RANKS,
        meshes={},
        states={},
        names=names,
        default_group="job",
    )
    ranks = parse("@n7")
    assert ranks.select(world) == RANKS[:4]
    assert work(lambda: ranks.select(world)) < 100_000


class TestLongPython:
    """What is too long to be parsed here is told apart by its first line."""

    def test_an_expression_of_600_kilobytes(self) -> None:
        assert console.read("1 + " * 150_000 + "1", "repl") is None
        assert console.read("cast = " + "1 + " * 150_000 + "1", "repl") is None
        assert console.read("cast(\n" + "1 +\n" * 150_000 + "1)", "repl") is None

    def test_a_long_command_for_some_ranks(self) -> None:
        command = "!x = 1\n" + "x += 1\n" * 2000
        assert console.read(f"cast 0-3 {command}", "repl") == console.Call(
            "cast", f"0-3 {command}".strip()
        )
        asked = console.read("ranks(0:4) " + "1 + " * 2000 + "1", "watch")
        assert isinstance(asked, console.Asked)
        assert asked.ranks == "ranks(0:4)"
