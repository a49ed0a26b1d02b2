"""Python kernels in front of torch's communication operators, those of DDP's reducer in C++ too.

docs/internals/comm.md has what was measured.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.looks import fingerprint_later, is_finite
from dap_mux.rank.comm.operators import NONE, OPERATORS, tensors_in
from dap_mux.rank.comm.record import C10D, Call, Record, Watching, outer_frame

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Iterable
    from types import CodeType

LAYER = "BackendSelect"
"""The place of a dispatcher's kernels that every call passes, in `inference_mode` too.

`OpOverload.redispatch` lets go of Python's global lock on the way to the backend's kernel, which
`call_boxed` of `torch.library.get_kernel` does not: jobs deadlocked
(docs/internals/comm.md#the-global-lock).
"""


BACKWARD = "_engine_run_backward"
"""The function of torch's that calls DDP's reducer, in C++."""
COALESCED = "_broadcast_coalesced"
"""The function in C++ that waits for its broadcasts itself, those of DDP's buffers."""


def put_before(
    make: Callable[[str, Any, Any], Callable[..., Any]],
    space: str = "c10d",
    names: Iterable[str] = OPERATORS,
) -> Any:
    """Put kernels before those of the backends; return their library, which keeps them there.

    `make`: makes one, of an operator's name, itself and LAYER's key. `names`: in that `space`.
    """
    torch: Any = sys.modules["torch"]
    layer = getattr(torch._C.DispatchKey, LAYER)  # noqa: SLF001
    library = torch.library.Library(space, "IMPL")
    for name in names:
        packet = getattr(getattr(torch.ops, space), name, None)
        if packet is not None:
            library.impl(name, make(name, packet.default, layer), LAYER, with_keyset=True)
    return library


class Watch(Watching):
    """The kernels in front of torch's, from `begin` to `end`."""

    misses = "communication calls"

    def __init__(self, mode: str, log: Callable[[str], object]) -> None:
        super().__init__(Record(), mode, log)
        self._c10d: Any = sys.modules[C10D]
        functional = put_before(self._wait_tensor, "_c10d_functional", ["wait_tensor"])
        self._libraries = [put_before(self._kernel), functional]
        self._wait = self._c10d.Work.wait
        self._c10d.Work.wait = self._waits = self._waiting(self._wait)

    def _kernel(self, name: str, overload: Any, layer: Any) -> Callable[..., Any]:
        names = [argument.name for argument in overload._schema.arguments]  # noqa: SLF001
        at, record, redispatch = names.index("process_group"), self.record, overload.redispatch

        def kernel(keys: Any, *arguments: Any, **named: Any) -> Any:
            call, caller = None, (outer_frame(1) or sys._getframe()).f_code  # noqa: SLF001
            try:
                call = record.enter(name, at, arguments)
                if self.mode != "time":
                    self._look(call, arguments)
                    if caller.co_name == BACKWARD and self.mode == "hash":
                        call.written = []  # DDP's buckets: the step hashes the gradients in them
            except Exception as error:  # noqa: BLE001  (the program's call goes on)
                self.fails(error)
            try:
                result = redispatch(keys.remove(layer), *arguments, **named)
            except BaseException:
                if call is not None:
                    call.returned = True
                raise
            if call is None:
                return result
            return self._left(call, result, caller)

        return kernel

    def _left(self, call: Call, result: Any, caller: CodeType) -> Any:
        """Note what the backend has returned; return what the caller is given."""
        try:
            self.record.leave(call, result)
            if self.taker is not None and call.written:
                if caller.co_name == BACKWARD:
                    result = self.taker.wrapped(call, result)
                elif COALESCED in caller.co_names and call.work is not None:
                    # A lone buffer is sent as it is, and BatchNorm counts its batches in it
                    # before any later call could take what was received.
                    call.work.wait()
        except Exception as error:  # noqa: BLE001
            self.fails(error)
        call.returned = True
        return result

    def _look(self, call: Call, arguments: tuple[Any, ...]) -> None:
        operator = OPERATORS[call.operator]
        inputs: list[Any] = []
        if operator.input != NONE and (operator.root == NONE or self._is_root(operator, arguments)):
            inputs = [*tensors_in(arguments[operator.input])]
        if self.mode in ("hash", "take"):
            call.inputs = [*map(fingerprint_later, inputs)]
            call.addresses = [int(tensor.data_ptr()) for tensor in inputs]
            if operator.output != NONE:
                call.written = [*tensors_in(arguments[operator.output])]
            if self.taker is not None:
                self.taker.enter(call, call.written)
        if self.sending:
            bad = [tensor for tensor in inputs if not is_finite(tensor)]
            for tell in [*self.sending] if bad else ():
                tell(call, bad)

    def _is_root(self, operator: Any, arguments: tuple[Any, ...]) -> bool:
        group = self._c10d.ProcessGroup.unbox(arguments[operator.root - 1])
        return int(arguments[operator.root]) == int(group.rank())

    def _waiting(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        def wait_and_look(work: Any, *arguments: Any, **named: Any) -> Any:
            result = wait(work, *arguments, **named)
            self.guarded(self.record.waited, work)
            return result

        return wait_and_look

    def _wait_tensor(self, _: str, overload: Any, layer: Any) -> Callable[..., Any]:
        redispatch = overload.redispatch

        def kernel(keys: Any, tensor: Any) -> Any:
            result = redispatch(keys.remove(layer), tensor)
            self.guarded(lambda: self.record.waited(output=int(tensor.data_ptr())))
            return result

        return kernel

    def end(self) -> None:
        """Give torch its own kernels back."""
        if self._c10d.Work.wait is self._waits:
            self._c10d.Work.wait = self._wait
        for library in self._libraries:
            library._destroy()  # noqa: SLF001
