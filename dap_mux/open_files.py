"""The limit of open files: a session takes all that it is allowed, its children keep their own.

The usual soft limit of 1,024 ends a session near a thousand ranks. Programs of the user's keep it:
some use `select`, which takes no higher number, or close every descriptor up to the limit.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

_FOR_OURSELVES: Final = 64  # the log, the listeners, a few clients
if sys.platform == "win32":  # it has no such limit

    def raise_limit() -> None:
        """Nothing to do."""

    def restore_limit() -> None:
        """Nothing to do."""

    def shortage(*_: int) -> str:
        """Nothing is short."""
        return ""
else:
    import resource

    _SOFT: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0]  # as we were started

    def raise_limit() -> None:
        """Let this process open as many files as it may."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def restore_limit() -> None:
        """Give a child the limit that it would have had without us; called between fork and exec.

        One that was lowered further since keeps that.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != _SOFT:
            resource.setrlimit(resource.RLIMIT_NOFILE, (_least(_SOFT, hard), hard))

    def shortage(ranks: int, each: int = 1) -> str:
        """Say why so many ranks do not fit, with `each` files for one of them; "" if they do."""
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        needed = _FOR_OURSELVES + ranks * each
        if soft == resource.RLIM_INFINITY or needed <= soft:
            return ""
        return (
            f"{ranks:,} ranks need about {needed:,} open files, and this session may open {soft:,}"
            ": the last ranks will not be attached. Raise the hard limit (ulimit -n "
            f"{needed}, as root or in limits.conf) and start the session again"
        )

    def _least(one: int, other: int) -> int:
        """The lower of two limits, of which -1 is none."""
        return min((each for each in (one, other) if each != resource.RLIM_INFINITY), default=-1)
