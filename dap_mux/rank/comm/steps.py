"""The steps of training: an optimizer's `step()` ends one, or a line. What parameters were then."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.line import Line
from dap_mux.rank.comm.looks import (
    Later,
    can_look,
    digest,
    fingerprint,
    fingerprint_later,
    fingerprint_of_part,
    unseen,
)
from dap_mux.rank.comm.record import place_of, user_frame
from dap_mux.rank.comm.sums import sums_of

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

    from dap_mux.rank.comm.record import Record

MAX_STEPS = 64
MAX_NAMED = 4096
DDP = "DistributedDataParallel"


class Step:
    """One step. `before`, `gradients`, `after`: hashes by the names of parameters, when it is over.

    `before`: the parameters before it, of an optimizer's first step, or all if asked. `place`:
    where `step()` was called. A name ends in `@1` or the like where its rank has only that shard.
    `tensors`: the addresses of gradients. Of the first step only, `constant`: parameters whose
    elements are all the same; `groups`: the names of the groups in which DDP keeps them equal, ""
    where it ignores them. `sums`: of values, by `before`, `gradients` and `after`, where asked.
    `equal`: digests of the values of expressions that are named so; `failed`: why there is none.
    """

    def __init__(self, number: int, optimizer: str, place: str) -> None:
        self.number = number
        self.optimizer = optimizer
        self.place = place
        self.before: dict[str, Any] = {}
        self.gradients: dict[str, Any] = {}
        self.after: dict[str, Any] = {}
        self.tensors: dict[str, int] = {}
        self.constant: list[str] = []
        self.groups: dict[str, str] = {}
        self.sums: dict[str, dict[str, list[float]]] = {}
        self.equal: dict[str, str] = {}
        self.failed: dict[str, str] = {}


class Steps:
    """Follows all optimizers. `last`: the steps that are over. `ended`: who is told of each.

    `looking`: who is told before (`gradient`) and after (`parameter`) each step of all names,
    parameters and gradients.
    """

    def __init__(self, record: Record, fails: Callable[[Exception], object]) -> None:
        self.last: deque[Step] = deque(maxlen=MAX_STEPS)
        self.ended: list[Callable[[Step], object]] = []
        self.looking: list[Callable[[str, Step, list[tuple[str, Any, Any]]], object]] = []
        self.mode = "time"
        self.whole = False
        """Whether `before` is known of each step."""
        self.sums = False
        """Whether `sums` are."""
        self.equal: list[str] = []
        """Expressions, evaluated where `step()` was called."""
        self._record = record
        self._fails = fails
        self._names: dict[int, str] = {}  # of parameters, by their identities
        self._groups: dict[int, str] = {}  # of DDP, likewise
        self._turns: dict[int, int] = {}  # how often each optimizer has made a step
        self._now: Step | None = None
        self._open: Step | None = None  # what optimizers have done since a line was reached
        self._line: Line | None = None
        optimizer: Any = sys.modules["torch.optim.optimizer"]
        self._hooks = [
            optimizer.register_optimizer_step_pre_hook(self._begins),
            optimizer.register_optimizer_step_post_hook(self._ends),
        ]

    def _begins(self, optimizer: Any, *_: Any) -> None:
        try:
            frame = sys._getframe(1)  # noqa: SLF001
            self._now = now = Step(self._record.step, type(optimizer).__name__, place_of(frame))
            if self.mode == "hash":
                self._record.look()  # nobody waits in Python for what DDP's reducer sends
                parameters = [*self._named(optimizer)]
                is_first = id(optimizer) not in self._turns
                if is_first:
                    self._note_first(now, parameters)
                if is_first or self.whole:
                    now.before = {name: _hash(each) for name, each in parameters}
                given = [(name, each) for name, each in parameters if each.grad is not None]
                now.gradients = {name: _with_zero(each.grad) for name, each in given}
                now.tensors = {name: _address(each.grad) for name, each in given}
                if self.sums:
                    now.sums["before"] = _sums(parameters if is_first else [])
                    alike = [each for each in given if shard_of(each[1].grad) == shard_of(each[1])]
                    now.sums["gradients"] = _sums([(name, each.grad) for name, each in alike])
            self._show("gradient", now, optimizer)
        except Exception as error:  # noqa: BLE001  (the program goes on)
            self._fails(error)

    def _note_first(self, now: Step, parameters: list[tuple[str, Any]]) -> None:
        now.constant = [name for name, each in parameters if _is_constant(each)]
        known = self._groups
        now.groups = {name: known[id(each)] for name, each in parameters if id(each) in known}

    def _ends(self, optimizer: Any, *_: Any) -> None:
        try:
            now, self._now = self._now, None
            if now is None:
                return
            if self.mode == "hash":
                turn = self._turns[id(optimizer)] = self._turns.get(id(optimizer), -1) + 1
                parameters = [*self._named(optimizer)]
                now.after = {name: self._after(each, turn) for name, each in parameters}
                if self.sums:
                    now.sums["after"] = _sums(parameters)
            self._show("parameter", now, optimizer)
            if self._line is None:
                self._over(now, user_frame(sys._getframe(1)))  # noqa: SLF001
            else:
                self._open = now if self._open is None else _joined(self._open, now)
        except Exception as error:  # noqa: BLE001
            self._fails(error)

    def end_at(self, place: str) -> None:
        """Have steps end where a thread comes to `FILE:LINE`, whatever optimizers do until then."""
        self._line = Line(place, self._reached)
        self._line.begin()

    def _reached(self, frame: FrameType) -> None:
        try:
            now, self._open = self._open or Step(0, "", ""), None
            now.number, now.place = self._record.step, place_of(frame)
            self._record.look()
            self._over(now, frame)
        except Exception as error:  # noqa: BLE001
            self._fails(error)

    def _over(self, now: Step, frame: FrameType | None) -> None:
        for text in self.equal if frame is not None else ():
            self._evaluate(text, now, frame)
        for hashes in (now.before, now.gradients, now.after):
            hashes.update((name, _settled(found)) for name, found in [*hashes.items()])
        self.last.append(now)
        self._record.step += 1
        for tell in [*self.ended]:
            tell(now)

    def _evaluate(self, text: str, now: Step, frame: Any) -> None:
        try:
            now.equal[text] = digest(eval(text, frame.f_globals, frame.f_locals))  # noqa: S307
        except Exception as error:  # noqa: BLE001  (the user's expression; the program goes on)
            now.failed[text] = f"{type(error).__name__}: {error}"

    def _after(self, parameter: Any, turn: int) -> str | Later:
        """Return the hash of a parameter after a step; of one of DDP's, a part at each turn.

        All of it would cost as much as the gradients do, which say the same but for what is done
        to parameters beside them. Ranks that begin to look in a running job have other turns, but
        their group has had as many calls.
        """
        group = self._groups.get(id(parameter))
        if self.whole or not group:
            return _hash(parameter)
        if self._record.from_start:
            return fingerprint_of_part(parameter, turn)
        calls = self._record.collectives(group)
        if calls is None:
            return _hash(parameter)
        # By the golden ratio each part has its turn, however many calls a step has.
        return fingerprint_of_part(parameter, calls * 0x9E3779B1 >> 29)

    def _show(self, what: str, step: Step, optimizer: Any) -> None:
        if self.looking:
            with unseen():
                named = [
                    (name, _local(each), None if each.grad is None else _local(each.grad))
                    for name, each in self._named(optimizer)
                ]
            for tell in [*self.looking]:
                tell(what, step, named)

    def _named(self, optimizer: Any) -> Iterator[tuple[str, Any]]:
        """Yield an optimizer's parameters, by the names that their module has for them."""
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if any(id(each) not in self._names for each in parameters):
            self._find_names()
        for at, each in enumerate(parameters[:MAX_NAMED]):
            name = self._names.setdefault(id(each), f"parameter {at} of {type(optimizer).__name__}")
            yield name + shard_of(each), each

    def _find_names(self) -> None:
        """Look through the modules of this process: the outermost one names a parameter."""
        module: Any = sys.modules["torch.nn"].Module
        depth: dict[int, int] = {}
        for each in gc.get_objects():
            if not issubclass(type(each), module):  # asks no object: some warn
                continue
            if type(each).__name__ == DDP:
                name = str(each.process_group.group_name)
                self._groups.update(dict.fromkeys(map(id, each.parameters()), ""))
                self._groups.update((id(one), name) for one in each._module_parameters)  # noqa: SLF001
            for name, parameter in each.named_parameters():
                plain = name.removeprefix("module.")  # DDP's
                if plain.count(".") >= depth.get(id(parameter), 0):
                    depth[id(parameter)] = plain.count(".")
                    self._names[id(parameter)] = plain

    def end(self) -> None:
        """Follow no optimizer any more."""
        for hook in self._hooks:
            hook.remove()
        if self._line is not None:
            self._line.end()


def _joined(step: Step, later: Step) -> Step:
    """Add what another optimizer, or the same one once more, has done in the same step."""
    for name in ("gradients", "after", "tensors"):
        getattr(step, name).update(getattr(later, name))
    step.before = {**later.before, **step.before}
    step.groups.update(later.groups)
    step.constant += later.constant
    for name, sums in later.sums.items():
        step.sums.setdefault(name, {}).update(sums)
    return step


def shard_of(tensor: Any) -> str:
    """Say which shard of a DTensor a rank has: `@` and its places along the sharded dimensions."""
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None:
        return ""
    places = zip(mesh.get_coordinate() or (), tensor.placements)  # noqa: B905  (Python 3.8)
    found = [str(at) for at, placement in places if not placement.is_replicate()]
    return "@" + ".".join(found) if found else ""


def _local(tensor: Any) -> Any:
    """Return what a rank has of a DTensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _hash(tensor: Any) -> str | Later:
    with unseen():
        return fingerprint_later(_local(tensor))


def _sums(named: list[tuple[str, Any]]) -> dict[str, list[float]]:
    return {name: sums_of(each) for name, each in named}


_zeros: dict[tuple[Any, Any], str] = {}


def _with_zero(tensor: Any) -> tuple[str | Later, str]:
    """Return its hash, and that of one like it whose elements are all 0."""
    local = _local(tensor)
    key = local.shape, local.dtype
    if key not in _zeros:
        with unseen() as torch:
            _zeros[key] = fingerprint(torch.zeros(local.shape, dtype=local.dtype))
    return _hash(tensor), _zeros[key]


def _settled(found: str | Later | tuple[str | Later, str]) -> str:
    """Return a hash, "0" for one whose elements are all 0: equal ones say nothing."""
    of, zero = found if isinstance(found, tuple) else (found, None)
    text = str(of)
    return "0" if text and text == zero else text


def _address(tensor: Any) -> int:
    with unseen():
        return int(_local(tensor).data_ptr())


def _is_constant(tensor: Any) -> bool:
    with unseen():
        local = _local(tensor)
        if not local.numel() or not can_look(local):
            return False
        return bool((local == local.flatten()[0]).all())
