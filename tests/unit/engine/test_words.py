"""What is ours of what a user types, and what stays Python."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.engine.debug_console.completions import hints
from dap_mux.engine.debug_console.evaluate import Asked, Call, read
from dap_mux.pure.rank_sets import Mesh, RankSetError, World
from dap_mux.pure.remote import is_program


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("%list all", Call("list", "all")),
        ("% list  all ", Call("list", "all")),
        ("%", Call("", "")),
        ("cast ranks(0:4) p loss", Call("cast", "ranks(0:4) p loss")),
        ("cast debugee ranks(0,1) n", Call("cast", "debugee ranks(0,1) n")),
        ("cast all c", Call("cast", "all c")),
        ("attach 3", Call("attach", "3")),
        ("attach debugee 13", Call("attach", "debugee 13")),
        ("ranks(0:4) loss", Asked("ranks(0:4)", "loss")),
        ("ranks(0,1): (a + b)", Asked("0,1", "(a + b)")),
        ("trainer.ranks(0) x", Asked("trainer.ranks(0)", "x")),
        ("@slow: x", Asked("@slow", "x")),
        ("@slow & stopped x", Asked("@slow & stopped", "x")),
        ("all loss", Asked("all", "loss")),
        ("stopped x.y", Asked("stopped", "x.y")),
        ("list", None),
        ("cast(x)", None),
        ("cast (int, x)", None),
        ("cast = 3", None),
        ("cast", None),
        ("attach", None),
        ("attach.x", None),
        ("castle 3", None),
        ("ranks(0) - loss", None),
        ("ranks = 3", None),
        ("all (x)", None),
        ("running = 1", None),
        ("@decorated\ndef f(): pass", None),
        ("3 loss", None),
        ("'\\d' 3 x", None),
        ("", None),
    ],
)
def test_in_a_debug_console(text: str, meant: object) -> None:
    assert read(text, "repl") == meant


@pytest.mark.parametrize("text", ["%list", "attach 3"])
def test_commands_are_for_the_debug_console(text: str) -> None:
    assert read(text, "watch") is None
    assert read(text, "") is None


def test_a_rank_set_gone_wrong_is_told_at_its_column() -> None:
    with pytest.raises(RankSetError) as caught:
        read("ranks(0:4:0) loss", "watch")
    assert caught.value.column == 10


def test_nesting_that_python_cannot_read_is_no_python() -> None:
    assert not is_program("(" * 5000 + ")" * 5000)
    assert not is_program("a\0b")


WORLD = World(tuple(("job", rank) for rank in range(4)), {"job": Mesh.parse("dp=2,tp=2")}, {}, {})
TYPED = st.lists(
    st.sampled_from(
        ["%", "list", "cast", "attach", " ", "ranks(", "0:4", ")", "@", "tp=", "p", "x", ":", "("]
    )
    | st.text(max_size=2),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("text", ["%", "% ", "%li", "% li", " %\tlis"])
def test_a_word_behind_a_percent_sign_is_replaced_whole(text: str) -> None:
    (offered,) = (one for one in hints(text, WORLD).targets if one["label"] == "%list")
    start = len(text) - len(text.lstrip())
    assert (offered["start"], offered["length"]) == (start, len(text) - start)


@given(text=TYPED, context=st.sampled_from(["repl", "watch", "hover", ""]))
def test_nonsense_is_read_or_refused(text: str, context: str) -> None:
    with suppress(RankSetError):
        read(text, context)


@given(text=TYPED)
def test_hints_for_nonsense_lie_within_it(text: str) -> None:
    found = hints(text, WORLD)
    for target in found.targets:
        assert 0 <= target["start"] <= len(text)
        assert target["start"] + target["length"] == len(text)
    assert found.python is None or 0 <= found.python <= len(text)
