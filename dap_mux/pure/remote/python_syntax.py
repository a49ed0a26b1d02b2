"""Whether a text is Python, as far as that is found out here: everybody waits meanwhile."""

from __future__ import annotations

import ast
import warnings
from typing import Final, Literal

MAX_PARSED_CHARS: Final = 4096  # longer texts are not parsed here, but by the ranks
UNCLOSED: Final = "was never closed"  # what Python says of a bracket whose other half is missing


def syntax_problem(text: str, mode: Literal["exec", "eval"]) -> str:
    """Return what is wrong with a text as Python, '' for nothing; it is not too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's escapes and comparisons, not ours
        try:
            ast.parse(text, mode=mode)
        except SyntaxError as error:
            return error.msg or "invalid syntax"
        except (ValueError, RecursionError, MemoryError) as error:
            return str(error) or "too deeply nested"
    return ""


def is_expression(text: str, longest: int = MAX_PARSED_CHARS) -> bool:
    """Whether Python takes this for an expression; anything else is run as a statement.

    A long text counts as a statement, for debugpy evaluates either way where it runs statements.
    """
    text = text.strip()
    return len(text) <= longest and not syntax_problem(text, "eval")


def is_program(text: str) -> bool:
    """Whether Python can read this; of a long text, whether it begins as Python does."""
    if len(text) <= MAX_PARSED_CHARS:
        return not syntax_problem(text, "exec")
    line = text[: MAX_PARSED_CHARS + 1].partition("\n")[0]
    problem = syntax_problem(line[:MAX_PARSED_CHARS], "exec")
    return not problem or UNCLOSED in problem
