"""Tells files of libraries from the program's own, by their paths alone."""

from __future__ import annotations

import re
from typing import Final

_LIBRARY: Final = re.compile(r"[/\\]lib(?:64)?[/\\]python\d|site-packages|dist-packages|^<frozen")


def is_library(path: str) -> bool:
    """Whether a file is the standard library's or an installed package's."""
    return _LIBRARY.search(path) is not None
