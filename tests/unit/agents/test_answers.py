"""Answers of the agent's tools: bounded, harmless, and honest about what they leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.frontends.mcp.answers import LIMIT, Unable, failure, fitted, text_of
from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError

JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3000),
    lambda inner: (
        st.lists(inner, max_size=300)
        | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=6)
    ),
    max_leaves=400,
)


def rows(count: int) -> dict[str, Any]:
    texts = (f"value {number} of a rank that differs from all others" for number in range(count))
    return {"ranks": [{"ranks": str(at), "value": text} for at, text in enumerate(texts)]}


@pytest.mark.parametrize("count", [1, 4, 64, 512, 8192])
def test_an_answer_is_bounded_whatever_the_number_of_ranks(count: int) -> None:
    answer = fitted(rows(count), "Pass `ranks`.")
    assert len(text_of(answer).encode()) <= LIMIT
    shown = len(answer["ranks"])
    assert shown == min(count, shown)
    if count <= 64:
        assert shown == count
        assert "next" not in answer
    else:
        assert shown >= 64
        assert answer["next"] == f"shown: {shown} of {count} in `ranks`. Pass `ranks`."


@given(st.dictionaries(st.sampled_from("uvwxyz"), JSON, max_size=6))
def test_anything_fits(body: dict[str, Any]) -> None:
    answer = fitted(body)
    assert len(text_of(answer).encode("utf-8", "replace")) <= LIMIT
    assert json.loads(text_of(answer)) == answer


def test_a_long_text_is_cut_and_its_length_told() -> None:
    answer = fitted({"value": "x" * 10_000_000}, "Pass `offset`.")
    assert len(text_of(answer)) <= LIMIT
    assert answer["value"].startswith("xxx")
    assert "Pass `offset`." in answer["next"]


def test_control_characters_and_marks_are_escaped() -> None:
    answer = fitted({"value": "\x1b[31mred\r\n\u202egnp\x07"})
    assert answer["value"] == "\\x1b[31mred\\r\\n\\u202egnp\\x07"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NothingToConnect("none"), "no-session"),
        (UsageError("what?"), "bad-argument"),
        (DapMuxError("no answer"), "failed"),
        (OSError("gone"), "failed"),
        (Unable("which-line", "two lines"), "which-line"),
    ],
)
def test_an_error_has_a_code_a_hint_and_options(error: Exception, code: str) -> None:
    body = failure(error, ["localhost:5677"])
    assert body.keys() == {"code", "hint", "options"}
    assert (body["code"], body["hint"]) == (code, str(error))
