"""The call that a thread's innermost frame is in: what is called there, of what, with what.

The frame itself knows where it is; its source names the function, and the other modules look that
name up. `source` and `values`: the modules `source_code` and `static_values`.
"""

from __future__ import annotations

import ast
import dis
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator
    from types import FrameType


MAX_TEXT = 200
MAX_MEMBERS = 512  # of a communicator; more are not told
CALLS = frozenset({
    "CALL", "CALL_FUNCTION", "CALL_FUNCTION_EX", "CALL_FUNCTION_KW", "CALL_KW", "CALL_METHOD",
})  # fmt: skip
METHODS = {"BEFORE_WITH": "__enter__", "SETUP_WITH": "__enter__", "FOR_ITER": "__next__"}
"""Instructions that call a method of a value that they find on the stack."""
FILES = {f"_io.{name}" for name in ("TextIOWrapper", "BufferedRandom", "BufferedReader", "FileIO")}
FILES.add("_io.BufferedWriter")
INNER_FILES = ("buffer", "raw")


def waiting_call(frame: FrameType, source: Any, values: Any, trees: Any) -> tuple[Any, Any]:
    """Return the fields of the call, or None, and what its function is a method of, or None."""
    code, offset = frame.f_code, frame.f_lasti
    instructions = code.co_code
    if not 0 <= offset < len(instructions):
        return None, None
    name = dis.opname[instructions[offset]]
    if name not in CALLS and name not in METHODS:
        return None, None
    text, node = _source_of(frame, name, source, trees)
    method = METHODS.get(name, "")
    if node is not None and name == "CALL" and not isinstance(node, ast.Call):
        # The end of a `with`, whose place is that of its beginning; since 3.14 the beginning too.
        method = "__exit__" if instructions[offset + 1] else "__enter__"
    call: dict[str, Any] = {"text": " ".join(text.split())[:MAX_TEXT]}
    function = node.func if isinstance(node, ast.Call) and not method else node
    if function is None:
        return call, None
    call["function"], receiver = values.called(function, frame, method)
    call["arguments"] = {} if method else values.arguments_of(node, frame)
    if receiver is values.MISSING:
        return call, None
    call["of"] = _described(receiver, values)
    return call, receiver


def _source_of(frame: FrameType, name: str, source: Any, trees: Any) -> tuple[str, Any]:
    """Return the text of what an instruction calls, and its syntax, None where it is not known."""
    code = frame.f_code
    where = source.span(frame) if name != "FOR_ITER" else None
    if where is not None:
        text = source.text(code, where)
        node = source.expression(text)
        is_long = "\n" in text and node is not None and sys.version_info >= (3, 9)
        return ast.unparse(node) if is_long else text, node
    line = frame.f_lineno
    found = [
        node
        for around in trees.around(code, line)
        for node in _candidates(around, name)
        if node.lineno == line
    ]
    return source.line(code, line), found[0] if len(found) == 1 else None


def _candidates(around: ast.AST, name: str) -> list[Any]:
    if METHODS.get(name) == "__enter__":
        return [item.context_expr for item in around.items] if isinstance(around, ast.With) else []
    if name == "FOR_ITER":
        return [around.iter] if isinstance(around, ast.For) else []
    return [around] if isinstance(around, ast.Call) else []


def _described(receiver: Any, values: Any) -> dict[str, Any]:
    """Return what tells a communicator, a socket or a file from others."""
    kinds = {values.class_name(each): each for each in values.mro(type(receiver))}
    if "mpi4py.MPI.Comm" in kinds:
        return _communicator(receiver, kinds["mpi4py.MPI.Comm"])
    if "_socket.socket" in kinds:
        return _socket(receiver, kinds["_socket.socket"])
    if values.class_name(type(receiver)) in FILES:
        return _file(receiver, values)
    return {}


def _communicator(receiver: Any, kind: Any) -> dict[str, Any]:
    """Nothing where MPI may not be called by a second thread, or not any more."""
    library = sys.modules["mpi4py.MPI"]
    if not usable(library) or not kind.__bool__(receiver):
        return {}
    size = kind.Get_size(receiver)
    found = {"rank": kind.Get_rank(receiver), "size": size}
    if size <= MAX_MEMBERS and library.Query_thread() >= library.THREAD_MULTIPLE:
        found["members"] = _members(receiver, kind, library)
    return found


def _members(receiver: Any, kind: Any, library: Any) -> list[int]:
    """Return the numbers of its ranks in MPI's world: nothing is sent for it."""
    ours, world = kind.Get_group(receiver), kind.Get_group(library.COMM_WORLD)
    try:
        numbers = library.Group.Translate_ranks(ours, list(range(ours.Get_size())), world)
    finally:
        ours.Free()
        world.Free()
    return [number if number >= 0 else -1 for number in numbers]


def usable(library: Any) -> bool:
    """Whether MPI may be called in this thread, while another one is in it."""
    alive = library.Is_initialized() and not library.Is_finalized()
    return bool(alive and library.Query_thread() >= library.THREAD_SERIALIZED)


def _socket(receiver: Any, kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"fd": kind.fileno(receiver)}
    try:
        peer = kind.getpeername(receiver)
    except OSError:  # it is not connected
        return found
    if isinstance(peer, tuple):
        found["peer"] = f"{peer[0]}:{peer[1]}"
    elif isinstance(peer, str) and peer:
        found["peer"] = peer
    return found


def _file(receiver: Any, values: Any) -> dict[str, Any]:
    """Its name is kept in the innermost file; one of the program's own may compute it."""
    while values.class_name(type(receiver)) in FILES:
        inner = (values.attribute(receiver, name) for name in INNER_FILES)
        following = next((one for one in inner if one is not values.MISSING), None)
        if following is None:
            name = values.attribute(receiver, "name")
            return {"name": name} if values.is_simple(name) else {}
        receiver = following
    return {}


# The locks that a thread waits for or has taken, and the exception that it handles.
#
# `source` and `values`: the modules `source_code` and `static_values`.

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


def handled(stacks: Any) -> Any:
    """Return each thread's exception that it handles; None where Python does not tell (< 3.10).

    `stacks`: that module. A collection in between would run finalizers, which would wait for a lock
    that this holds.
    """
    current = getattr(sys, "_current_exceptions", None)
    with stacks.no_collection():
        return current() if current is not None else None


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
