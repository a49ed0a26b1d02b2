"""What is meant by the texts that the engine wraps around a user's expression."""

from __future__ import annotations

import ast
import re
from typing import Final, NamedTuple

from dap_mux.engine.values.fan_out import _IN_MAIN
from tests.support.fake_rank.injected_calls import injected_call, users_text

_MAIN: Final = re.compile(
    re.escape(_IN_MAIN.format("<>")).replace("'<>'", "(?P<text>.*)"), re.DOTALL
)


class Question(NamedTuple):
    """The user's own text; `in_main`: asked without a frame, so its type comes before it."""

    text: str
    in_main: bool = False
    summary: bool = False

    def __str__(self) -> str:
        text = f"seen({self.text})" if self.summary else self.text
        return f"in main: {text}" if self.in_main else text


def question(expression: str) -> Question:
    """Take a question apart."""
    in_main = _MAIN.fullmatch(expression)
    text = ast.literal_eval(in_main["text"]) if in_main else expression
    called = injected_call(text)
    if called is None or called.module != "tensor_summary":
        return Question(text, in_main is not None)
    return Question(users_text(called), in_main is not None, summary=True)
