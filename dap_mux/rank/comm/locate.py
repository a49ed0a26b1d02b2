"""Names the operation and the line that made a value which is not finite, by a look at each one.

torch's dispatch mode sees every operation of its thread: forward, backward on CPU, optimizer.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dap_mux.rank.comm import session
from dap_mux.rank.comm.looks import can_look, unseen
from dap_mux.rank.comm.operators import tensors_in
from dap_mux.rank.comm.record import place_of, users_frame

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Iterable, Iterator

UNINITIALISED = ("empty", "new_empty", "resize_", "set_")
"""How the names of operations begin whose outputs hold what the memory held before."""
OVERWRITE = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_"})
"""Operations in place that do not read what they write to."""
GIVES = "lift_fresh"
"""The operators that a tensor passes through which is made of Python's numbers."""
WRAPPERS = frozenset({"AsyncCollectiveTensor", "DTensor"})
MAX_KEPT = 1 << 16
MAX_INPUTS = 4


class Origin:
    """An operation whose output was the first not to be finite.

    `place`: where the user's code called it, in backward where it called the forward operation;
    `backward`: where it called `backward()` then. `mask`: it only put the constant -inf there, as
    attention does to what is masked; `given`: its input was not finite, and none has made that.
    """

    def __init__(self, order: int, step: int, operation: str, place: str, module: str) -> None:
        self.order = order
        self.step = step
        self.operation = operation
        self.place = place
        self.module = module
        self.backward = ""
        self.mask = self.given = False
        self.counts = (0, 0, 0)
        self.inputs: list[str] = []


class Locator:
    """Follows the operations of the thread that enters it. `step`: the number of this step."""

    def __init__(self) -> None:
        self._log: Callable[[str], object] | None = session.log
        torch: Any = sys.modules["torch"]
        modes: Any = sys.modules["torch.utils._python_dispatch"]
        core: Any = torch._C  # noqa: SLF001
        self._node = core._current_autograd_node  # noqa: SLF001
        self._next_number = core._autograd._get_sequence_nr  # noqa: SLF001
        self._modes_now = core._len_torch_dispatch_stack  # noqa: SLF001
        self._own_node: Any = torch.autograd.function.BackwardCFunction
        self._is_plain = frozenset({torch.Tensor, torch.nn.Parameter}).issuperset
        self._bad: dict[int, Origin] = {}  # by the addresses of storages
        self._lines: dict[int, tuple[str, str]] = {}  # by the numbers of autograd's nodes
        self._schemas: dict[Any, _Schema] = {}
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # of modules
        self._stack: list[Any] = []  # modules whose forward is under way
        self._order = 0
        self.step = 0
        module: Any = sys.modules["torch.nn.modules.module"]
        self._hooks = [
            module.register_module_forward_pre_hook(self._enters),
            module.register_module_forward_hook(self._leaves, always_call=True),
        ]

        members = {"__torch_dispatch__": lambda _, *rest: self._operation(*rest)}
        self._mode = type("Locating", (modes.TorchDispatchMode,), members)()
        self._thread = 0
        self._is_over = False

    def enter(self) -> None:
        """Follow this thread from now on, unless a mode of the program's is under way."""
        if not self._thread and not self._modes_now():
            self._thread = threading.get_ident()
            self._mode.__enter__()

    def end(self) -> None:
        """Follow it no more."""
        self._is_over = True
        for hook in self._hooks:
            hook.remove()
        # Only that thread can leave the mode, and not below another one; else it passes all on.
        if self._thread == threading.get_ident() and self._modes_now() == 1:
            self._mode.__exit__(None, None, None)

    def origin_of(self, tensors: Iterable[Any]) -> Origin | None:
        """Return the operation that made what is not finite in these, None for unknown."""
        found = [self._bad[key] for key in map(_storage, tensors) if key in self._bad]
        return _first(found) if found else None

    # Modules

    def _enters(self, module: Any, _: Any) -> None:
        if not self._stack and module not in self._names:
            for name, each in module.named_modules():
                self._names[each] = "" if name == "module" else name.removeprefix("module.")
        self._stack.append(module)

    def _leaves(self, module: Any, *_: Any) -> None:
        while self._stack and self._stack.pop() is not module:
            pass

    def _module(self) -> str:
        names = (self._names.get(each, "") for each in reversed(self._stack))
        return next((name for name in names if name), "")

    # Operations

    def _operation(self, operator: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        if any(each.__name__ in WRAPPERS for each in types):
            return NotImplemented  # it comes back with what it is made of
        if self._is_over or not self._is_plain(types):
            return operator(*arguments, **named)
        node = self._node()
        if node is None:
            self._note_line()
        result = operator(*arguments, **named)
        try:
            schema = self._schemas.get(operator)
            if schema is None:
                schema = self._schemas[operator] = _Schema(operator)
            if not schema.is_view:
                self._look(schema, node, arguments, named, result)
        except Exception as error:  # noqa: BLE001  (the program's operation goes on)
            log, self._log = self._log, None
            if log is not None:
                log(f"cannot locate by {operator}: {type(error).__name__}: {error}")
        return result

    def _note_line(self) -> None:
        """Keep where a forward operation is called, for backward: its node has been made just now.

        An operation that makes no node finds the number of an older one, which has its line.
        """
        number = self._next_number() - 1
        if number not in self._lines:
            if len(self._lines) > MAX_KEPT:
                self._lines.clear()
            self._lines[number] = place_of(users_frame(3)), self._module()

    def _look(
        self, schema: _Schema, node: Any, arguments: Any, named: dict[str, Any], result: Any
    ) -> None:
        written = [*schema.written(arguments, named)]
        outputs = written or [*tensors_in(result)]
        bad = [] if schema.is_empty else [each for each in outputs if not _all_finite(each)]
        if not bad:
            if self._bad:
                for each in outputs:
                    if each.numel() * each.element_size() == each.untyped_storage().nbytes():
                        self._bad.pop(_storage(each), None)
            return
        origin = self._origin(schema, node, arguments, named, written, bad)
        if len(self._bad) > MAX_KEPT:
            self._bad.clear()
        for each in bad:
            self._bad[_storage(each)] = origin

    def _origin(
        self,
        schema: _Schema,
        node: Any,
        arguments: Any,
        named: dict[str, Any],
        written: list[Any],
        bad: list[Any],
    ) -> Origin:
        """Return the operation that made these: an earlier one, or this."""
        overwritten = {id(each) for each in written}
        inputs = [*tensors_in([*arguments, *named.values()])]
        others = [each for each in inputs if id(each) not in overwritten]
        read = [] if schema.name in OVERWRITE or schema.has_out else written
        bad_inputs = [each for each in others if not _all_finite(each)]
        from_written = [each for each in read if _storage(each) in self._bad]
        known = [
            self._bad[key] for key in map(_storage, bad_inputs + from_written) if key in self._bad
        ]
        if [each for each in known if not each.mask]:
            return _first(known)
        nan, infinite, of, below = _counts(bad)
        if known and not nan and infinite == below:
            return known[0]
        made = self._new(schema, node, (nan, infinite, of))
        constants = [*_constants(arguments), *_constants([*named.values()])]
        made.given = bool(bad_inputs) and not known
        self._bad.update((_storage(each), made) for each in bad_inputs if made.given)
        made.mask = (constants == [-math.inf] or made.given) and not nan and infinite == below
        made.inputs = [_summary(each) for each in others[:MAX_INPUTS]]
        return made

    def _new(self, schema: _Schema, node: Any, counts: tuple[int, int, int]) -> Origin:
        self._order += 1
        place = place_of(users_frame(5))
        made = Origin(self._order, self.step, schema.name, place, self._module())
        made.counts = counts
        if node is not None:
            made.operation = f"{node.name()} ({schema.name})"
            known = self._lines.get(node._sequence_nr())  # noqa: SLF001
            # The user's own `backward` is a better place than the call of its forward.
            if known is not None and not isinstance(node, self._own_node):
                made.backward, (made.place, made.module) = made.place, known
        return made


class _Schema:
    """The parts of an operator's schema that matter here."""

    def __init__(self, operator: Any) -> None:
        schema = operator._schema  # noqa: SLF001
        self.name = str(schema.name).rpartition("::")[2]
        self.is_empty = self.name.startswith(UNINITIALISED)
        self._written = [
            (at, argument.name)
            for at, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.has_out = any(argument.is_out for argument in schema.arguments)
        self.is_view = (
            not self._written
            and self.name != GIVES
            and any(each.alias_info is not None for each in schema.returns)
        )

    def written(self, arguments: Any, named: dict[str, Any]) -> Iterator[Any]:
        for at, name in self._written:
            yield from tensors_in([arguments[at] if at < len(arguments) else named.get(name)])


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001


def _first(origins: list[Origin]) -> Origin:
    return min(origins, key=lambda each: (each.mask, each.order))


def _all_finite(tensor: Any) -> bool:
    """As `is_finite`, where no mode and no gradient is: within an operation."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or not can_look(tensor):
        return True
    plain = tensor.detach()
    return bool(plain.sum().isfinite() or plain.isfinite().all())


def _constants(values: Any) -> Iterator[float]:
    for each in values:
        if isinstance(each, float) and not math.isfinite(each):
            yield each
        elif hasattr(each, "data_ptr") and not each.dim() and not _all_finite(each):
            yield float(each.real)


def _counts(tensors: list[Any]) -> tuple[int, int, int, int]:
    """Return how many elements are NaN, infinite, there at all, and -inf."""
    nan = infinite = of = below = 0
    for each in tensors:
        plain = each.detach()
        nan, of = nan + int(plain.isnan().sum()), of + plain.numel()
        infinite += int(plain.isinf().sum())
        below += 0 if plain.is_complex() else int((plain == -math.inf).sum())
    return nan, infinite, of, below


def counts_of(tensors: list[Any]) -> tuple[int, int, int]:
    """Return how many elements are NaN, infinite, and there at all."""
    with unseen():
        return _counts(tensors)[:3]


def _summary(tensor: Any) -> str:
    text = f"{str(tensor.dtype).replace('torch.', '')} {[*tensor.shape]}"
    plain = tensor.detach()
    if not plain.numel() or not can_look(tensor) or plain.is_complex():
        return text
    if plain.is_floating_point():
        plain = plain[plain.isfinite()]
    low, high = (plain.min().item(), plain.max().item()) if plain.numel() else (math.nan, math.nan)
    return f"{text}, {low:.6g} to {high:.6g}"
