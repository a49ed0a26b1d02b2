"""Code that cloudpickle ships by value keeps the name of its file: breakpoints hit in it."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import CodeType
from typing import Any

MODULE = "cloudpickle.cloudpickle"
UNNAMED = "<dynamic-code>"


def keep_file_names() -> None:
    """From now on, if cloudpickle is loaded; where its parts have changed, it stays as it is."""
    cloudpickle: Any = sys.modules.get(MODULE)
    if cloudpickle is None:
        return
    with suppress(Exception):
        _name_as_loaded(cloudpickle)
    with suppress(Exception):
        _name_as_written(cloudpickle)


# cloudpickle 3.1.3 and later write `<dynamic-code>` instead
# (https://github.com/cloudpipe/cloudpickle: so equal functions are pickled to equal bytes). Where
# the sender is a process of ours the name is written after all; elsewhere it is that of the file
# whose globals the function has.
def _name_as_loaded(cloudpickle: Any) -> None:
    make = cloudpickle._make_function  # noqa: SLF001
    if hasattr(make, "__wrapped__"):
        return

    def make_named(code: CodeType, names: dict[str, Any], *rest: Any) -> Any:
        file = names.get("__file__")
        return make(named(code, file) if isinstance(file, str) else code, names, *rest)

    make_named.__wrapped__ = make  # type: ignore[attr-defined]
    # Others who unpickle what this process pickles find it by its name.
    make_named.__module__, make_named.__qualname__ = make.__module__, make.__qualname__
    make_named.__name__ = make.__name__
    cloudpickle._make_function = make_named  # noqa: SLF001


def _name_as_written(cloudpickle: Any) -> None:
    reducers = cloudpickle.Pickler._dispatch_table  # noqa: SLF001
    reduce = reducers[CodeType]
    if hasattr(reduce, "__wrapped__"):
        return

    def reduce_named(code: CodeType) -> Any:
        kind, arguments = reduce(code)
        name = code.co_filename
        return kind, tuple(name if each == UNNAMED else each for each in arguments)

    reduce_named.__wrapped__ = reduce  # type: ignore[attr-defined]
    reducers[CodeType] = reduce_named


def named(code: CodeType, file: str) -> CodeType:
    """Return code, and all that is defined in it, as of this file, unless it has a name."""
    if code.co_filename != UNNAMED:
        return code
    inner = (named(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))
