"""Values of a frame's names, and names of what is called, found without running the program's code.

No property, no `__getattr__` and no `__str__` of the program runs for it.
"""

from __future__ import annotations

import ast
import gc
import math
import operator
import os
import struct
import sys
import types
from inspect import CO_OPTIMIZED, getattr_static
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterable
    from types import FrameType


MISSING = object()
MAX_STRING = 100
MAX_NUMBER = 2**63
OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.BitXor: operator.xor,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
NAMES = frozenset({"__module__", "__qualname__"})  # which C computes
OF_A_CLASS = (
    types.ClassMethodDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def value_of(node: ast.AST, frame: FrameType) -> Any:
    """Return the value of a constant, a name, an attribute or item of one; MISSING for all else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return variable(node.id, frame)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        return MISSING if owner is MISSING else attribute(owner, mangled(node.attr, frame))
    if isinstance(node, ast.Subscript):
        return _item(value_of(node.value, frame), value_of(node.slice, frame))
    return _worked_out(node, frame)


def _worked_out(node: ast.AST, frame: FrameType) -> Any:
    """Return the value of an expression of numbers."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = value_of(node.operand, frame)
        return -value if type(value) in (int, float) else MISSING
    if isinstance(node, ast.IfExp):
        test = value_of(node.test, frame)
        chosen = node.body if test is True else node.orelse
        return value_of(chosen, frame) if type(test) is bool else MISSING
    if isinstance(node, ast.BinOp):
        return _reckoned(OPERATORS.get(type(node.op)), node.left, node.right, frame)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _reckoned(OPERATORS.get(type(node.ops[0])), node.left, node.comparators[0], frame)
    return MISSING


def _reckoned(operate: Any, left: ast.AST, right: ast.AST, frame: FrameType) -> Any:
    """Return what an operator makes of two whole numbers."""
    numbers = value_of(left, frame), value_of(right, frame)
    if operate is None or not all(type(one) is int and abs(one) < MAX_NUMBER for one in numbers):
        return MISSING
    try:
        return operate(*numbers)
    except ZeroDivisionError:
        return MISSING


def variable(name: str, frame: FrameType) -> Any:
    """Return a local, global or built-in variable.

    The locals are asked for only where it is one: up to Python 3.12 that keeps them all alive until
    the function returns.
    """
    code = frame.f_code
    known = name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
    places: list[Any] = [frame.f_globals, frame.f_builtins]
    if known or not code.co_flags & CO_OPTIMIZED:
        places.insert(0, frame.f_locals)
    for place in places:
        if isinstance(place, dict):
            found = dict.get(place, name, MISSING)
        elif type(place).__name__ == "FrameLocalsProxy":  # since Python 3.13
            found = place.get(name, MISSING)
        else:
            continue
        if found is not MISSING:
            return found
    return MISSING


def _item(owner: Any, place: Any) -> Any:
    """Return an item of a list, or of a dict by its name: other keys may compare themselves."""
    if type(owner) in (list, tuple) and type(place) is int:
        return owner[place] if -len(owner) <= place < len(owner) else MISSING
    if type(owner) is dict and type(place) is str:
        return owner.get(place, MISSING)
    return MISSING


def mangled(name: str, frame: FrameType) -> str:
    """Return an attribute's real name, where it is a private one of a class."""
    if not name.startswith("__") or name.endswith("__"):
        return name
    names = frame.f_code.co_names
    return next((one for one in names if one.startswith("_") and one.endswith(name)), name)


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute as it is kept: MISSING for one that the program computes."""
    try:
        found = getattr_static(owner, name)
    except (AttributeError, TypeError):
        return MISSING
    if isinstance(found, (staticmethod, classmethod)):
        return found.__func__
    in_c = isinstance(found, types.MemberDescriptorType) or (
        isinstance(found, types.GetSetDescriptorType) and name in NAMES
    )
    if in_c and not isinstance(owner, type):
        try:
            return found.__get__(owner, type(owner))
        except (AttributeError, TypeError):
            return MISSING
    return MISSING if _computes(found) else found


def _computes(found: Any) -> bool:
    """Whether it is a property, or some other thing that decides what the attribute is."""
    spaces = [namespace(one) for one in mro(type(found))]
    getters = (space.get("__get__") for space in spaces)
    in_python = any(isinstance(getter, types.FunctionType) for getter in getters)
    return in_python or any("__set__" in space for space in spaces)


def called(node: ast.AST, frame: FrameType, method: str = "") -> tuple[str, Any]:
    """Return the name of a function, "" for unknown, and what it is a method of, or MISSING.

    `method`: one of the value itself, `__enter__` say, instead of the value.
    """
    if method:
        return _method(value_of(node, frame), method)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        return MISSING_CALL if owner is MISSING else _method(owner, mangled(node.attr, frame))
    found = value_of(node, frame)
    return MISSING_CALL if found is MISSING else (function_name(found), _self(found))


MISSING_CALL = "", MISSING


def _method(owner: Any, name: str) -> tuple[str, Any]:
    found = attribute(owner, name)
    if found is MISSING:
        return MISSING_CALL
    definer = _definer(type(owner), name)
    is_own = isinstance(owner, (type, types.ModuleType)) or definer is None
    if is_own or isinstance(found, types.FunctionType):
        bound = _self(found)
        receiver = MISSING if isinstance(owner, (type, types.ModuleType)) else owner
        return function_name(found), receiver if bound is MISSING else bound
    return f"{class_name(definer)}.{name}", owner


def function_name(found: Any) -> str:
    """Return the module and qualified name of what is called."""
    if isinstance(found, types.MethodType):
        return function_name(found.__func__)
    if isinstance(found, type):
        return class_name(found)
    owner = _self(found)
    if owner is not MISSING:
        kind = owner if isinstance(owner, type) else type(owner)
        return f"{class_name(_definer(kind, found.__name__) or kind)}.{found.__name__}"
    if isinstance(found, OF_A_CLASS):
        return f"{class_name(found.__objclass__)}.{found.__name__}"
    module, name = attribute(found, "__module__"), attribute(found, "__qualname__")
    if isinstance(found, types.BuiltinFunctionType):
        module, name = found.__module__, found.__name__
    if isinstance(module, str) and isinstance(name, str):
        return f"{module}.{name}"
    return f"{class_name(type(found))}.__call__"


def _self(found: Any) -> Any:
    """Return what a built-in method is bound to; a function is bound to its module, or nothing."""
    if not isinstance(found, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return MISSING
    owner = found.__self__
    nothing = owner is None or isinstance(owner, types.ModuleType)
    return MISSING if nothing or type(owner).__name__ == "PyCapsule" else owner


def _definer(kind: type, name: str) -> type | None:
    """Return the class that an attribute comes from."""
    return next((one for one in mro(kind) if name in namespace(one)), None)


def mro(kind: type) -> tuple[type, ...]:
    """Return a class and its bases, whatever its metaclass does."""
    found: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return found


def namespace(kind: type) -> Any:
    """Return the attributes of a class."""
    return type.__dict__["__dict__"].__get__(kind)


def class_name(kind: Any) -> str:
    """Return the module and qualified name of a class."""
    module = type.__dict__["__module__"].__get__(kind)
    name = type.__dict__["__qualname__"].__get__(kind)
    return f"{module}.{name}" if isinstance(module, str) else str(name)


def arguments_of(node: ast.AST, frame: FrameType) -> dict[str, Any]:
    """Return the arguments of a call that are numbers or short strings."""
    if not isinstance(node, ast.Call):
        return {}
    found: dict[str, Any] = {}
    for place, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            break
        found[str(place)] = value_of(argument, frame)
    for keyword in node.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = value_of(keyword.value, frame)
    return {name: value for name, value in found.items() if is_simple(value)}


def is_simple(value: Any) -> bool:
    """Whether it can be told as it is."""
    if type(value) is int:
        return -MAX_NUMBER <= value < MAX_NUMBER
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return len(value) <= MAX_STRING
    return value is None or type(value) is bool


# Whether a thread gets on: numbers among its variables, which a loop changes as it goes.
#
# A thread that waits for others in a loop of C (MPI does) looks alike whether it gets on or not.

MAX_FRAMES = 8
SPACES = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 13)
"""Of Pythons whose `f_locals` would keep all that a function has alive until it returns, the memory
is read instead: `/proc/self/mem` fails where a pointer is no more, and nothing is held by it."""
F_FRAME, LOCALS = 24, 72
"""Where a frame object has its frame, and that its variables, of CPython 3.11 and 3.12."""
HEAD = struct.Struct("PP")
WORD = struct.calcsize("P")
SIZES = {id(int): 28, id(float): 24}
"""Bytes of an object whose value counts; of a larger number the lowest digit does."""


def progress(frames: list[Any], with_locals: bool, polls: bool) -> str:
    """Return a digest of the numbers in these frames, innermost last.

    `with_locals`: those of functions even where `f_locals` keeps them alive, for threads that show
    nothing else. `polls`: the innermost one looks for something until it is there, so that its
    numbers do not count.
    """
    found: list[Any] = []
    numbers: Iterable[Any]
    last = len(frames) - polls
    for frame in frames[:last][-MAX_FRAMES:]:
        code = frame.f_code
        if not code.co_flags & CO_OPTIMIZED:
            numbers = (frame.f_globals.get(name) for name in code.co_names)
        elif SPACES:
            found.append(_in_memory(frame.address, code.co_nlocals))
            continue
        elif sys.version_info < (3, 11):
            numbers = gc.get_referents(frame.itself)
        elif with_locals or sys.version_info >= (3, 13):
            numbers = (frame.f_locals.get(name) for name in code.co_varnames)
        else:
            continue
        found.append([number for number in numbers if type(number) in (int, float)])
    return f"{crc32(repr(found).encode()):08x}" if any(found) else ""


def _in_memory(address: int, count: int) -> list[bytes]:
    """Return the values of the numbers among a function's variables, [] where that fails."""
    found = []
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        (frame,) = struct.unpack("P", os.pread(memory, WORD, address + F_FRAME))
        values = struct.unpack(f"{count}P", os.pread(memory, WORD * count, frame + LOCALS))
        for value in filter(None, values):
            head = os.pread(memory, HEAD.size, value)
            size = SIZES.get(HEAD.unpack(head)[1])
            if size:
                found.append(os.pread(memory, size - HEAD.size, value + HEAD.size))
    except (OSError, struct.error):
        return []
    finally:
        os.close(memory)
    return found
