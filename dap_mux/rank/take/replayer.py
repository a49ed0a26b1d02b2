"""Answers each communication of one process from a rank's file, as if the others were there."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

from dap_mux.rank.comm.kernels import put_before
from dap_mux.rank.comm.looks import fingerprint, unseen
from dap_mux.rank.comm.operators import NONE, OPERATORS, tensors_in
from dap_mux.rank.comm.record import C10D, Call, Record
from dap_mux.rank.comm.steps import Steps
from dap_mux.rank.take.halt import Halt
from dap_mux.rank.take.rank_file import (
    ANY_SOURCE,
    SOURCE,
    NotARankFile,
    RankFile,
    Taken,
    is_main,
)
from dap_mux.rank.take.reasons import Reasons
from dap_mux.rank.take.stores import Stores
from dap_mux.rank.take.together import GLOO, PATIENCE, Together


class Parted(RuntimeError):
    """The program went another way than the one that was recorded; the message says where."""


class Replayer:
    """The kernels in place of torch's, and the groups in place of its own."""

    def __init__(
        self,
        file: RankFile,
        halt: Halt | None,
        log: Callable[[str], object],
        together: Together,
        *,
        goes_on: bool,
    ) -> None:
        self.record: Record | None = None
        self._file, self._halt, self._log = file, halt, log
        self._goes_on, self._together = goes_on, together
        self._left: dict[tuple[str, bool], deque[Taken]] = defaultdict(deque)
        for taken in file.calls:
            call = taken.call
            self._left[_line_of(call["operator"], call["group"], call["main"])].append(taken)
        self._last: Taken | None = None
        self._before = 0
        self.reasons = Reasons(file.head, file.files)
        self._library: Any = None
        self._sources: dict[int, int] = {}  # who has sent what is at an address
        self._real_sources: dict[int, int] = {}
        """Of those that are replayed together: the number that each had when it last was heard."""

    def begin(self) -> None:
        """Take torch.distributed's place; it has been imported, and no group made."""
        _replayers.append(self)
        restore_random_state(self._file.head)  # it was written down here
        torch: Any = sys.modules["torch"]
        c10d: Any = sys.modules[C10D]
        self.record = Record()
        steps = Steps(self.record, lambda error: self._log(f"counts no steps: {error}"))
        if self._halt is not None:
            steps.ended.append(self._halt.stepped)
        fake: Any = import_module("torch.testing._internal.distributed.fake_pg")
        self._replace_groups(torch, c10d, fake.FakeStore)
        self._together.begin()
        Stores(self._file.stores, Parted).begin(fake.FakeStore)
        sources, real, source = self._sources, self._real_sources, c10d.Work._source_rank  # noqa: SLF001

        def source_rank(work: Any) -> int:
            try:
                return sources[work.get_future().value()[0].data_ptr()]
            except RuntimeError:  # gloo's own has no future
                return real[source(work)]

        c10d.Work._source_rank = source_rank  # noqa: SLF001
        self._library = put_before(self._kernel)

    def _replace_groups(self, torch: Any, c10d: Any, make_store: Any) -> None:
        """Every group has the backend "fake", which has all ranks of the world and none there.

        To the program it is gloo where that is asked for: a pipeline of torch 2.14 refuses a fake.
        """
        init, helper = c10d.init_process_group, c10d._new_process_group_helper  # noqa: SLF001
        head = self._file.head

        asked = ""

        def init_process_group(backend: Any = None, *_: Any, **named: Any) -> Any:
            nonlocal asked
            asked = str(backend or named.get("backend", "")).lower()
            kept = {name: named[name] for name in ("timeout",) if name in named}
            store = make_store()
            return init("fake", store=store, rank=head["rank"], world_size=head["world"], **kept)

        def make_group(
            size: int, rank: int, ranks: Any, backend: Any, store: Any, *rest: Any, **named: Any
        ) -> Any:
            shown = str(backend) if ranks else asked
            name = rest[0] if rest else named["group_name"]
            real = self._together.group(str(name), [*map(int, ranks)])
            if real is not None:
                named["timeout"] = PATIENCE
            backend, store = real or ("fake", store)
            made, store = helper(size, rank, ranks, backend, store, *rest, **named)
            if made in c10d._world.pg_map and shown == GLOO:  # noqa: SLF001
                c10d._world.pg_map[made] = c10d.Backend(GLOO), store  # noqa: SLF001
            return made, store

        for module in (c10d, torch.distributed):
            module.init_process_group = init_process_group
        c10d._new_process_group_helper = make_group  # noqa: SLF001

    def _kernel(self, name: str, overload: Any, layer: Any) -> Callable[..., Any]:
        names = [argument.name for argument in overload._schema.arguments]  # noqa: SLF001
        at, redispatch, operator = (
            names.index("process_group"),
            overload.redispatch,
            OPERATORS[name],
        )

        def kernel(keys: Any, *arguments: Any, **named: Any) -> Any:
            assert self.record is not None
            call = self.record.enter(name, at, arguments)
            inputs = [] if operator.input == NONE else [*tensors_in(arguments[operator.input])]
            outputs = [] if operator.output == NONE else [*tensors_in(arguments[operator.output])]
            received = self._received(call, inputs, outputs)
            real = self._together.way(call, arguments, lambda: received)
            if real is not None:
                return self._real(keys.remove(layer), call, overload, real, named)
            result = None
            if overload._schema.returns:  # noqa: SLF001
                result = redispatch(keys.remove(layer), *arguments, **named)
            with unseen() as torch:
                for tensor, data in zip(outputs, received):  # noqa: B905
                    _write(torch, tensor, data)
                    if name == ANY_SOURCE:
                        self._sources[tensor.data_ptr()] = SOURCE.unpack(received[-1])[0]
                call.returned = True
                return self._answer(torch, result, outputs)

        return kernel

    def _real(
        self, keys: Any, call: Call, overload: Any, arguments: tuple[Any, ...], named: Any
    ) -> Any:
        """Make a call among ranks that are all replayed."""
        call.returned = True
        if call.operator == ANY_SOURCE:
            self._real_sources[arguments[2]] = call.peer
            recv: Any = sys.modules["torch"].ops.c10d.recv_.default
            return recv.redispatch(keys, *arguments)
        return overload.redispatch(keys, *arguments, **named)

    def _answer(self, torch: Any, result: Any, outputs: list[Any]) -> Any:
        if result is None:
            return None
        done = torch.futures.Future()
        done.set_result(outputs)  # DDP's reducer reads it
        work = torch._C._distributed_c10d._create_work_from_future(done).boxed()  # noqa: SLF001
        return (*result[:-1], work) if isinstance(result, (list, tuple)) else work

    def _received(self, call: Call, inputs: list[Any], outputs: list[Any]) -> list[bytes]:
        """Return what the call received when it was recorded. Raises Parted."""
        now = [[str(each.dtype), [*each.shape]] for each in outputs]
        found = self.answer(call, lambda: [*map(fingerprint, inputs)], now)
        if found is None:
            said = _said(call, self._last)
            raise Parted(f"here the record ends, before this call was over: {said}")
        return found

    def answer(
        self, call: Call, sends: Callable[[], list[str]], now: list[list[Any]], carrier: str = ""
    ) -> list[bytes] | None:
        """Return what the call received, None where it never came. Raises Parted."""
        try:
            taken = self._equal(call, sends, now, carrier)
            received = self._file.received(taken, _hash if "torch" in sys.modules else None)
        except (Parted, NotARankFile) as error:
            if self._halt is not None:
                self._halt.end()  # before its place: the debugger shows the exception
            raise Parted(str(error)) from None
        self._before = taken.call["order"] - 1
        if self._halt is not None:
            self._halt.before(taken)
        if taken.block is None:
            return None
        self._before, self._last = taken.call["order"], taken
        self.reasons.unrepeated.called(taken.call["step"])
        return received

    def _equal(
        self, call: Call, sends: Callable[[], list[str]], now: list[list[Any]], carrier: str
    ) -> Taken:
        """Return the call as it was recorded. Raises Parted."""
        left = self._left[_line_of(call.operator, call.group[0], is_main())]
        if not left:
            ends = not any(self._left.values())
            more = "here the record ends" if ends else "the record has no more of its kind"
            raise Parted(f"{more}: {_said(call, self._last)}{self._after()}")
        taken = left.popleft()
        then, said = taken.call, _said(call, taken)
        self.reasons.note(then, call)
        at = f"; --at call:{then['order']} stops before it"
        here = call.operator, call.group[0], now, carrier
        if here != (then["operator"], then["group"], then["outputs"], then.get("carrier", "")):
            raise Parted(
                f"{said}{_shapes(now)}, the record has {then['kind']}{_shapes(then['outputs'])} "
                f"of group {then['group']} at {then['place']}{self._after()}{at}"
            )
        sent = sends() if then["sent"] else []
        if sent != then["sent"] and not self._goes_on:
            raise Parted(
                f"{said} sends other values than it sent then, at {then['place']}{self._after()}; "
                f"--go-on gives it what it received then{at}"
            )
        return taken

    def _after(self) -> str:
        if self._last is None:
            return ""
        last = self._last.call
        why = self.reasons.known()
        return f"; the last equal call is {last['order']}, {last['kind']} at {last['place']}{why}"


_replayers: list[Replayer] = []


def place() -> str:
    """Return as JSON the last call `before` the place where this replay is, 0 for none."""
    return json.dumps({"before": _replayers[0]._before if _replayers else 0})  # noqa: SLF001


def _line_of(operator: str, group: str, main: bool) -> tuple[str, bool]:
    """Return what has an order of its own: the main thread, else a group's calls of one sort."""
    described = OPERATORS.get(operator)
    return ("", False) if main else (group, described is not None and described.is_p2p)


def _said(call: Call, then: Taken | None) -> str:
    step = f" in step {then.call['step']}" if then is not None else ""
    return f"call {call.number} of group {call.group[0]}{step} is {call.kind} at {call.place}"


def _shapes(outputs: list[Any]) -> str:
    said = ", ".join(f"{dtype.replace('torch.', '')} {tuple(shape)}" for dtype, shape in outputs)
    return f" of {said}" if said else ""


def _hash(data: bytes) -> bytes:
    with unseen() as torch:
        flat = torch.frombuffer(bytearray(data or b"-"), dtype=torch.uint8)[: len(data)]
    return bytes.fromhex(fingerprint(flat))


def _write(torch: Any, tensor: Any, data: bytes) -> None:
    if data:
        flat = torch.frombuffer(bytearray(data), dtype=tensor.dtype)
        tensor.detach().copy_(flat.view(tensor.shape))


def restore_surroundings(head: dict[str, Any], environment: dict[str, str]) -> None:
    """Give this process variables and the random state of the rank. Raises ValueError."""
    os.environ.update(environment)
    os.environ.update(RANK=str(head["rank"]), WORLD_SIZE=str(head["world"]))
    restore_random_state(head)


def restore_random_state(head: dict[str, Any]) -> None:
    """Give Python's random numbers the state that they had. Raises ValueError."""
    try:
        version, numbers, gauss = head["random"]["python"]
        random.setstate((version, tuple(numbers), gauss))
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"its random state is none: {type(error).__name__}: {error}") from error
