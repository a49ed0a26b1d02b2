"""Command lines of modules that are installed, whatever lies in the working directory."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_PLACE = Path("rank", "start", "run_module.py")
_FILE = Path(__file__).absolute().parent / _PLACE


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


def debugpy_folder() -> str:
    """Return the folder of our own debugpy, for Pythons that have none; '' without one."""
    spec = find_spec("debugpy")
    return str(Path(spec.origin).parent) if spec is not None and spec.origin else ""
