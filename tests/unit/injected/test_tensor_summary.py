"""What a rank says of an array; the text that does it is run here as a rank runs it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dap_mux.pure.remote import summarised
from dap_mux.rank.injected import source_of
from dap_mux.rank.injected.tensor_summary import THREAD, all_threads

SOURCE = source_of("tensor_summary")


def seen(value: object, text: str = "value") -> Any:
    return eval(summarised(SOURCE, text), {"value": value})


@pytest.mark.parametrize("value", [3, 2.5, "text", None, [1, 2], {"a": 1}, object])
def test_what_is_no_array_is_itself(value: object) -> None:
    assert seen(value) is value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(2.31), "2.31"),
        (np.float32(2.31), "2.31"),
        (np.float16(0.1), "0.1"),
        (np.int64(7), "7"),
        (np.array([[2.5]]), "2.5"),
        (np.float32("nan"), "nan"),
        (np.float32(1e-20), "1e-20"),
        (np.bool_(1), "True"),
        (np.str_("x"), "np.str_('x')"),
    ],
)
def test_one_number_is_shown_as_one(value: Any, text: str) -> None:
    assert repr(seen(value)) == text
    assert type(seen(value)).__name__ == type(value).__name__


def test_an_array_is_a_line() -> None:
    value = np.arange(12, dtype="float32").reshape(3, 4)
    found = seen(value)
    assert repr(found) == "ndarray[3, 4] float32 · norm 22.4944438 · nan 0 · inf 0"
    assert (found.shape, found.dtype, found.norm) == ((3, 4), "float32", pytest.approx(506**0.5))


def test_nan_and_inf_are_counted() -> None:
    found = seen(np.array([1.0, np.nan, np.inf, -np.inf]))
    assert (found.nan, found.inf) == (1, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "complex64", "bool"])
def test_every_kind_of_number(dtype: str) -> None:
    value = np.ones((2, 5000), dtype)
    assert seen(value).norm == pytest.approx(100)


def test_half_floats_do_not_overflow_and_views_are_read_as_they_lie() -> None:
    value = np.full((300, 300), 6e4, "float16")[::2, ::3]
    assert seen(value).norm == pytest.approx(float(value[0, 0]) * 15000**0.5)


def test_what_cannot_be_counted_has_its_shape() -> None:
    assert repr(seen(np.array(["a", "b"]))) == "ndarray[2] <U1"
    assert repr(seen(np.zeros((0, 3)))) == "ndarray[0, 3] float64 · norm 0 · nan 0 · inf 0"


def test_the_users_text_may_be_anything_that_has_a_value() -> None:
    assert seen(np.ones(3), "value[0] + 1  # and a comment").__repr__() == "2.0"
    assert seen(4, "value, 5") == (4, 5)
    assert seen(4, "[x for x in range(value)]") == [0, 1, 2, 3]
    assert summarised(SOURCE, "x = 3") == "x = 3"
    assert "$" not in summarised(SOURCE, "value")
    assert summarised(SOURCE, "value + $rank") != "value + $rank"


class FakeStream:
    """A device's queue."""

    def __init__(self, *, idle: bool) -> None:
        self.query = lambda: idle


class FakeDevice:
    def __init__(self, kind: str) -> None:
        self.type = kind

    def __str__(self) -> str:
        return f"{self.type}:1"


class FakeTensor:
    """What is asked of a tensor before its data."""

    shape = (2, 3)
    dtype = "torch.bfloat16"

    def __init__(self, kind: str = "cuda") -> None:
        self.device = FakeDevice(kind)

    def detach(self) -> FakeTensor:
        return self

    def numel(self) -> int:
        return 6

    def is_floating_point(self) -> bool:
        return True

    def element_size(self) -> int:
        return 4


class FakeTorch(ModuleType):
    """A torch whose device computes a norm only when it has been let go."""

    Tensor = FakeTensor
    no_grad = np.errstate

    def __init__(self, *, idle: bool) -> None:
        super().__init__("torch")
        self.goes_on = threading.Event()
        self.asked: list[str] = []
        self.linalg = SimpleNamespace(vector_norm=self._norm)
        self.on: list[object] = []
        self.stream = FakeStream(idle=idle)
        self.cuda = SimpleNamespace(current_stream=lambda _: self.stream, stream=self._use)

    @contextmanager
    def _use(self, stream: object) -> Iterator[None]:
        self.on.append(stream)
        yield

    def _norm(self, _: object) -> float:
        self.asked.append(threading.current_thread().name)
        self.goes_on.wait()
        return 2.5


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorch]:
    module = FakeTorch(idle=True)
    monkeypatch.setitem(sys.modules, "torch", module)
    yield module
    module.goes_on.set()
    for thread in all_threads():
        if thread.name.startswith(THREAD):
            thread.join()


def test_a_busy_gpu_is_not_asked(torch: FakeTorch) -> None:
    torch.stream = FakeStream(idle=False)
    found = seen(FakeTensor())
    assert repr(found) == "FakeTensor[2, 3] bfloat16 cuda:1 · not computed yet"
    assert torch.asked == []


@pytest.mark.parametrize("kind", ["cuda", "npu"])
def test_a_device_that_hangs_keeps_nobody(torch: FakeTorch, kind: str) -> None:
    """A queue with nothing in it may belong to a device that hangs; not all have one to look at.

    debugpy hides the thread that hangs, as its own, from `threading.enumerate`.
    """
    import_module("debugpy.server.api")  # which finds the other
    daemon_thread = import_module("_pydevd_bundle.pydevd_daemon_thread")
    daemon_thread.mark_as_pydevd_daemon_thread(threading.Thread())
    for _ in range(2):
        found = seen(FakeTensor(kind))
        assert repr(found) == f"FakeTensor[2, 3] bfloat16 {kind}:1 · not computed yet"
        assert (found.shape, found.pending) == ((2, 3), "not computed yet")
    assert len(torch.asked) == 1  # one thread hangs, and no more
    (thread,) = (each for each in all_threads() if each.name == torch.asked[0])
    assert thread.daemon  # the program may end


def test_numbers_of_a_device_that_goes_on(torch: FakeTorch) -> None:
    torch.goes_on.set()
    found = seen(FakeTensor())
    assert repr(found) == "FakeTensor[2, 3] bfloat16 cuda:1 · norm 2.5 · nan 0 · inf 0"
    assert torch.on == [torch.stream]  # where the value is computed


class Placement:
    """Where a DTensor's part lies."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def is_partial(self) -> bool:
        return self._text == "P(sum)"


class DTensor(FakeTensor):
    """A tensor over several ranks, with a part here."""

    shape = (8, 3)
    dtype = "torch.float32"

    def __init__(self, *placements: str) -> None:
        super().__init__("cpu")
        self.placements = tuple(map(Placement, placements))

    def to_local(self) -> FakeTensor:
        return FakeTensor("cpu")


def test_a_tensor_over_several_ranks_names_what_is_global_and_what_is_local(
    torch: FakeTorch,
) -> None:
    torch.goes_on.set()
    found = seen(DTensor("S(0)", "R"))
    assert repr(found) == (
        "DTensor global [8, 3] float32 cpu:1 · S(0), R · local [2, 3] norm 2.5 nan 0 inf 0"
    )
    assert (found.shape, found.local, found.placements) == ((8, 3), [2, 3], "S(0), R")


def test_one_number_is_the_value_only_where_it_is_whole(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.goes_on.set()
    for kind in (DTensor, FakeTensor):
        monkeypatch.setattr(kind, "shape", ())
        monkeypatch.setattr(kind, "numel", lambda _: 1)
    monkeypatch.setattr(FakeTensor, "item", lambda _: 7, raising=False)
    assert repr(seen(DTensor("R"))) == "7"
    partial = repr(seen(DTensor("P(sum)")))
    assert partial == "DTensor global [] float32 cpu:1 · P(sum) · local [] norm 2.5 nan 0 inf 0"


class Shard:
    """A part of a jax array, on one device."""

    def __init__(self, device: str, index: int, data: object) -> None:
        self.device, self.index, self.data = device, index, data


class ArrayImpl:
    """What is asked of an array of jax."""

    dtype = np.dtype("float32")

    def __init__(self, shape: tuple[int, ...], *shards: Shard, whole: bool = True) -> None:
        self.shape, self.addressable_shards, self.is_fully_addressable = shape, shards, whole
        self.sharding = SimpleNamespace(spec="PartitionSpec('x',)")


@pytest.fixture
def _jax(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("jax")
    module.Array = ArrayImpl  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", module)


@pytest.mark.usefixtures("_jax")
def test_an_array_of_jax_by_the_parts_that_are_here() -> None:
    part = np.full((2, 3), 2, "float32")
    one = Shard("cpu:0", 0, part)
    assert repr(seen(ArrayImpl((2, 3), one))) == (
        "ArrayImpl[2, 3] float32 cpu:0 · norm 4.89897949 · nan 0 · inf 0"
    )
    assert repr(seen(ArrayImpl((), Shard("cpu:0", 0, np.float32(0.1))))) == "0.1"
    copies = ArrayImpl((2, 3), one, Shard("cpu:1", 0, part))
    assert repr(seen(copies)) == (
        "ArrayImpl[2, 3] float32 2 devices · norm 4.89897949 · nan 0 · inf 0"
    )
    here = (one, Shard("cpu:1", 1, part))
    assert repr(seen(ArrayImpl((8, 3), *here, whole=False))) == (
        "ArrayImpl global [8, 3] float32 2 devices · PartitionSpec('x',) · "
        "local 2 x [2, 3] norm 6.92820323 nan 0 inf 0"
    )


@pytest.mark.usefixtures("_jax")
def test_an_array_of_jax_that_is_never_computed() -> None:
    goes_on = threading.Event()

    class Later:
        shape = (2,)

        def __array__(self, *_: object, **__: object) -> Any:
            goes_on.wait()
            return np.zeros(2)

    found = seen(ArrayImpl((2,), Shard("tpu:3", 0, Later())))
    assert repr(found) == "ArrayImpl[2] float32 tpu:3 · not computed yet"
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name.endswith("tpu:3"):
            thread.join()


@pytest.mark.usefixtures("_jax")
def test_a_value_that_jax_is_tracing_has_its_shape() -> None:
    tracer = ArrayImpl((4, 2))
    del tracer.addressable_shards
    assert repr(seen(tracer)) == "ArrayImpl[4, 2] float32"
