"""The call that a thread's innermost frame is in: what is called there, of what, with what.

The frame itself knows where it is; its source names the function, and the other modules look that
name up. `source` and `values`: the modules `source_code` and `static_values`.
"""

from __future__ import annotations

import ast
import dis
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
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
