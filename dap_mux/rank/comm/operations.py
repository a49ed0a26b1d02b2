"""Follows each operation of torch on this rank: where, of what, and what came out, as hashes."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.locate import WRAPPERS
from dap_mux.rank.comm.looks import fingerprint
from dap_mux.rank.comm.operators import tensors_in
from dap_mux.rank.comm.record import place_of, users_frame

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

OTHERS = ("c10d", "_c10d_functional", "_dtensor", "fsdp", "prim", "profiler")
"""Namespaces whose operations are calls, which the record has, or only copy around these."""
FAKE = "FakeTensor"
"""Has a shape and no memory: DTensor computes with such ones where a result is to be."""
MOST_FORWARD = 200_000
MOST_ARGUMENTS = 200


class Operations:
    """Follows them in the thread that makes it; `tell` gets each as a line of the trace."""

    def __init__(
        self, tell: Callable[[dict[str, Any]], object], fails: Callable[[Exception], object]
    ) -> None:
        self._tell = tell
        self._fails = fails
        self._places: dict[int, str] = {}  # of forward operations, by autograd's number of them
        self._torch: Any = sys.modules["torch"]
        autograd: Any = self._torch._C  # noqa: SLF001
        self._node = getattr(autograd, "_current_autograd_node", lambda: None)
        self._sequence = getattr(autograd._autograd, "_get_sequence_nr", lambda: 0)  # noqa: SLF001
        modes: Any = sys.modules["torch.utils._python_dispatch"]
        members = {"__torch_dispatch__": lambda _, *rest: self._dispatch(*rest)}
        self._mode = type("Operations", (modes.TorchDispatchMode,), members)()
        self._mode.__enter__()
        self._thread = threading.get_ident()

    def _dispatch(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        schema = function._schema.arguments  # noqa: SLF001
        values = [*arguments, *(named.get(each.name) for each in schema[len(arguments) :])]
        if any(hasattr(each, "_spec") or each.__name__ in WRAPPERS for each in types):
            return NotImplemented  # it computes by tensors that come here next
        if function.namespace in OTHERS or any(each.__name__ == FAKE for each in types):
            return function(*arguments, **named)
        try:
            before = [[fingerprint(each) for each in _tensors(one)] for one in values]
            line = self._line(function, place_of(users_frame(2)), values)
        except Exception as error:  # noqa: BLE001  (the program goes on)
            self._fails(error)
            return function(*arguments, **named)
        result = function(*arguments, **named)
        try:
            self._end(line, schema, before, values, result)
        except Exception as error:  # noqa: BLE001
            self._fails(error)
        return result

    def _line(self, function: Any, place: str, arguments: list[Any]) -> dict[str, Any]:
        node = self._node()
        forward = ""
        if node is not None:
            forward = self._places.get(int(node._sequence_nr()), "")  # noqa: SLF001
        else:
            number = int(self._sequence()) - 1
            self._places[number] = place
            if len(self._places) > MOST_FORWARD:
                del self._places[next(iter(self._places))]
        told = ", ".join(map(_said, arguments))[:MOST_ARGUMENTS]
        line: dict[str, Any] = {
            "kind": "op",
            "name": str(function),
            "place": place,
            "arguments": told,
        }
        if self._torch.Tag.nondeterministic_seeded in function.tags:
            line["random"] = True
        if forward:
            line["forward"] = forward
        return line

    def _end(
        self, line: dict[str, Any], schema: Any, before: list[list[str]], values: Any, out: Any
    ) -> None:
        written = [
            [*_tensors(value)] if at.alias_info is not None and at.alias_info.is_write else []
            for at, value in zip(schema, values)  # noqa: B905  (Python 3.8)
        ]
        results = [*_tensors(out)]
        lists = [each for each in before if len(each) > 1]
        if line["name"].startswith("aten._foreach") and lists:
            for at in range(len(lists[0])):
                inputs = [each[at if len(each) > 1 else 0] for each in before if each]
                outputs = [each[at] for each in [*written, results] if at < len(each)]
                self._told(line, inputs, outputs)
        else:
            inputs = [each for one in before for each in one]
            changed = [each for one in written for each in one]
            known = {id(each) for each in changed}
            changed += [each for each in results if id(each) not in known]
            self._told(line, inputs, changed)

    def _told(self, line: dict[str, Any], inputs: list[str], outputs: list[Any]) -> None:
        tensors = [int(each.untyped_storage().data_ptr()) for each in outputs]
        hashes = [*map(fingerprint, outputs)]
        self._tell({**line, "inputs": inputs, "outputs": hashes, "tensors": tensors})

    def end(self) -> None:
        """Follow no operation any more, where this is the thread that began."""
        if threading.get_ident() == self._thread:
            self._mode.__exit__(None, None, None)


def _tensors(values: Any) -> Any:
    """Return the tensors of an argument, also where it is one of a list."""
    return (
        each
        for each in tensors_in(values)
        if hasattr(each, "untyped_storage") and type(each).__name__ != FAKE
    )


def _said(value: Any) -> str:
    """Say what an argument is that is no tensor; nothing that differs from process to process."""
    if value is None or isinstance(value, (bool, int, float, str, complex)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_said, value)) + "]"
    if hasattr(value, "data_ptr"):
        return f"{str(value.dtype).replace('torch.', '')}{[*value.shape]}"
    name = type(value).__name__
    return str(value) if name in ("dtype", "layout", "memory_format") else name
