"""The commands of a page of docs/, as somebody types them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def typed(page: str, block: int) -> list[list[str]]:
    """The words of each line of a page's code block."""
    blocks = _BLOCK.findall((_DOCS / page).read_text("utf-8"))
    return [shlex.split(line, comments=True) for line in blocks[block].splitlines()]


def ours(words: list[str], old: str = "", new: str = "") -> list[str]:
    """The words behind `dap-mux`, with the page's example replaced by the real thing."""
    assert words[0] == "dap-mux"
    assert old in " ".join(words)
    return [word.replace(old, new) for word in words[1:]]
