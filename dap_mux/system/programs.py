"""How programs are started: command lines of our modules, and the limit of open files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PLACE = Path("rank", "start", "run_module.py")
_FILE = Path(__file__).absolute().parents[1] / _PLACE


def module_command(module: str) -> list[str]:
    """Return what follows a Python's own options to run this module; see `run_module.py`."""
    return [str(_FILE), module]


def runs_module(words: Sequence[str], module: str) -> bool:
    """Whether a Python's command line runs this module: as above, by `-m`, or as VS Code does."""
    way, what = words[1:3] if len(words) > 2 else ("", "")
    if way == "-c":  # vscode-extension/src/logic/adapterCommand.ts
        return what.endswith(f"_run_module_as_main({module!r})")
    return what == module and (way == "-m" or is_starter(way))


def is_starter(word: str) -> bool:
    """Whether it is the file by which a module is run."""
    return word.endswith(str(_PLACE))


def lent_packages() -> str:
    """Return the folders of the packages that a rank in another Python needs of ours."""
    return os.pathsep.join(filter(None, (str(_FILE.parents[2]), debugpy_folder())))


def debugpy_folder() -> str:
    """Return the folder of our own debugpy, for Pythons that have none; '' without one."""
    spec = find_spec("debugpy")
    return str(Path(spec.origin).parent) if spec is not None and spec.origin else ""


# The limit of open files: a session takes all that it is allowed, its children keep their own.
#
# The usual soft limit of 1,024 ends a session near a thousand ranks. Programs of the user's keep
# it: some use `select`, which takes no higher number, or close every descriptor up to the limit.

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
