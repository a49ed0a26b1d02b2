"""Which releases of debugpy the ranks may have.

A job brings its own. What is older than we test works with what is known of it, and is said to be
old; below that nothing is known, and the rank is left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from dap_mux.pure.remote.injected_sources import InjectedSources

Version: TypeAlias = tuple[int, ...]
TESTED: Final[Version] = (1, 8, 14)  # the oldest, as in pyproject.toml
REFUSED_BELOW: Final[Version] = (1, 8, 0)
ANSWERS_WITHOUT_FRAME: Final[Version] = (1, 8, 21)
_NUMBERS: Final = r"\d+\.\d+\.\d+"


@lru_cache(maxsize=8)
def version_of(text: str) -> Version | None:
    """The numbers of a release; None where this is none."""
    found = re.match(_NUMBERS, text)
    return tuple(map(int, found[0].split("."))) if found else None


def too_old(text: str) -> str:
    """Why a rank with this debugpy is refused; "" where it is not."""
    version = version_of(text)
    if version is None or version >= REFUSED_BELOW:
        return ""
    return f"its debugpy is {text}, and dap-mux needs {_TESTED} or newer: {_UPGRADE}"


def old(text: str) -> str:
    """What to say of a rank that is attached with this debugpy; "" for nothing."""
    version = version_of(text)
    if version is None or version >= TESTED:
        return ""
    return f"its debugpy is {text}, older than {_TESTED}, the oldest tested: upgrade it: {_UPGRADE}"


def prints_values(text: str) -> bool:
    """Whether this debugpy prints what an `evaluate` without a frame should answer."""
    version = version_of(text)
    return version is not None and version < ANSWERS_WITHOUT_FRAME


def answer_without_frame(injected: InjectedSources) -> str:
    """Return what makes a rank answer an `evaluate` without a frame, whose value it would print.

    A statement, so that this itself prints nothing.
    """
    source = injected["evaluation"]
    return f"own = {{}}; exec({source!r}, own); own['answer_without_frame'](); del own"


_TESTED: Final = ".".join(map(str, TESTED))
_UPGRADE: Final = f"pip install 'debugpy>={_TESTED}'"
