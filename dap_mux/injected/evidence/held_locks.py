"""The locks that a thread waits for or has taken, and the exception that it handles.

`source` and `values`: the modules `source_code` and `static_values`.
"""

from __future__ import annotations

import ast
import dis
import gc
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator
    from types import FrameType

LOCK, RLOCK = type(threading.Lock()), type(threading.RLock())
OWNER = re.compile(r"owner=(\d+)")  # in the text of an RLock
WITH = {
    dis.opmap[name] for name in ("BEFORE_WITH", "LOAD_SPECIAL", "SETUP_WITH") if name in dis.opmap
}
TAKES = (".acquire", ".__enter__")
MAX_HANDLING = 300
SIMPLE = (str, bytes, int, float, bool, type(None))


def identity(lock: Any) -> str:
    """Return a text that no other lock has."""
    return f"{type(lock).__module__}.{type(lock).__qualname__} {id(lock):x}"


def waited_for(function: str, receiver: Any) -> tuple[str, int]:
    """Return the lock that a call takes, "" for none, and which thread has it, 0 for unknown."""
    if not function.endswith(TAKES) or type(receiver) not in (LOCK, RLOCK):
        return "", 0
    return identity(receiver), owner(receiver)


def owner(lock: Any) -> int:
    """Return which thread has a lock, 0 for none or unknown."""
    found = OWNER.search(repr(lock)) if type(lock) is RLOCK else None
    return int(found[1]) if found else 0


def holds(
    ident: int, frames: list[FrameType], own: list[FrameType], source: Any, values: Any, trees: Any
) -> list[str]:
    """Return the locks that a thread has taken by `with`; `own`: the frames of the user's code."""
    released = [lock for frame in frames for lock in _waits_without(frame, values)]
    found = []
    for frame in own:
        for item in _entered(frame, source, trees) if _has(frame, WITH) else ():
            lock = _lock_of(values.value_of(item, frame), values)
            if lock is not None and lock not in released and _is_taken(lock, ident):
                found.append(identity(lock))
    return list(dict.fromkeys(found))


def _has(frame: FrameType, operations: set[int]) -> bool:
    return not operations.isdisjoint(frame.f_code.co_code[::2])


def _entered(frame: FrameType, source: Any, trees: Any) -> Iterator[ast.expr]:
    """Yield the context managers that the frame has entered and not left."""
    line = frame.f_lineno
    where = source.span(frame)
    place = (where[0], where[2]) if where is not None else None
    for node in trees.around(frame.f_code, line):
        if not isinstance(node, ast.With):
            continue
        entered = [item.context_expr for item in node.items]
        if place is not None and place < (node.body[0].lineno, node.body[0].col_offset):
            entered = [each for each in entered if _end(each) <= place]
        elif place is None and (source.is_entering(frame) or not _within(node.body, line)):
            entered = []
        yield from entered


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _within(body: list[Any], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _lock_of(value: Any, values: Any) -> Any:
    if isinstance(value, threading.Condition):
        value = values.attribute(value, "_lock")
    return value if type(value) in (LOCK, RLOCK) else None


def _is_taken(lock: Any, ident: int) -> bool:
    return owner(lock) == ident if type(lock) is RLOCK else bool(lock.locked())


def _waits_without(frame: FrameType, values: Any) -> Iterator[Any]:
    """Yield the lock of a condition that this frame waits for: it is free meanwhile."""
    code = frame.f_code
    if code.co_name == "wait" and code.co_filename == threading.__file__:
        lock = _lock_of(values.variable("self", frame), values)
        if lock is not None:
            yield lock


def handled() -> Any:
    """Return each thread's exception that it handles; None where Python does not tell (< 3.10).

    No collection may come in between, for its finalizers would wait for a lock that this holds.
    """
    current = getattr(sys, "_current_exceptions", None)
    enabled = gc.isenabled()
    gc.disable()
    try:
        return current() if current is not None else None
    finally:
        if enabled:
            gc.enable()


def handling(ident: int, own: list[FrameType], exceptions: Any, values: Any, trees: Any) -> str:
    """Return the exception in whose handler a thread is, "" for none."""
    if exceptions is not None:
        found = exceptions.get(ident)
        found = found[1] if isinstance(found, tuple) else found  # before Python 3.12
        return described(found, values) if isinstance(found, BaseException) else ""
    told = (_by_source(frame, values, trees) for frame in reversed(own))
    return next(filter(None, told), "")


def _by_source(frame: FrameType, values: Any, trees: Any) -> str:
    """Return the exception of the `except` that a frame is in, or that its `__exit__` was given."""
    if frame.f_code.co_name == "__exit__":
        given = (values.variable(name, frame) for name in frame.f_code.co_varnames[:4])
        found = next((one for one in given if isinstance(one, BaseException)), None)
        return "" if found is None else described(found, values)
    for node in trees.around(frame.f_code, frame.f_lineno):
        if isinstance(node, ast.ExceptHandler) and _within(node.body, frame.f_lineno):
            value = values.variable(node.name, frame) if node.name else None
            if isinstance(value, BaseException):
                return described(value, values)
            return _as_written(node.type)
    return ""


def _as_written(kind: ast.expr | None) -> str:
    if kind is None:
        return "BaseException"
    if isinstance(kind, ast.Tuple):
        return ", ".join(map(_as_written, kind.elts))
    if isinstance(kind, ast.Attribute):
        return f"{_as_written(kind.value)}.{kind.attr}"
    return kind.id if isinstance(kind, ast.Name) else "an exception"


def described(exception: BaseException, values: Any) -> str:
    """Return an exception as a traceback names it; its text only if no code of the program runs."""
    name: str = values.class_name(type(exception))
    name = name.rpartition(".")[2] if name.startswith(("builtins.", "__main__.")) else name
    arguments: Any = BaseException.args.__get__(exception)  # type: ignore[attr-defined]
    teller = next(one for one in values.mro(type(exception)) if "__str__" in values.namespace(one))
    simple = all(type(one) in SIMPLE for one in arguments)
    if not simple or not values.class_name(teller).startswith("builtins."):
        return name
    text = teller.__str__(exception)
    return (f"{name}: {text}" if text else name)[:MAX_HANDLING]
