"""What a rank says of torch; small stand-ins for the parts of torch that are asked."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

from dap_mux.rank.injected import torch_state
from dap_mux.rank.injected.torch_state import function_at, look

HERE: Final = __file__


def helper(x: int) -> int:
    return x + 1  # in helper


def step(x: int) -> list[int]:
    first = helper(x)  # in step
    return [first * each for each in range(3)]  # in a comprehension


def untouched() -> None:
    """Of this torch knows nothing."""
    helper(0)  # in untouched


def at(mark: str) -> int:
    lines = Path(HERE).read_text("utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


def compiled(code: CodeType, guard: str = "") -> dict[str, ModuleType]:
    """A torch that has compiled one function."""
    frames: Any = ModuleType("torch._dynamo.convert_frame")
    frames.input_codes = SimpleNamespace(seen=[lambda: None, lambda: code])
    caches: Any = ModuleType("torch._C._dynamo.eval_frame")
    entry = SimpleNamespace(guard_manager=guard)
    caches._debug_get_cache_entry_list = lambda asked: [entry] if asked is code else []
    modules = {each.__name__: each for each in (frames, caches)}
    return {**modules, "torch": ModuleType("torch")}


def seen(
    monkeypatch: pytest.MonkeyPatch, modules: dict[str, ModuleType], *marks: str
) -> dict[str, Any]:
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    found: dict[str, Any] = json.loads(look([(HERE, at(mark)) for mark in marks], False))
    return found


def test_without_torch_there_is_nothing() -> None:
    assert json.loads(look([(HERE, 1)], True)) == {"torch": False, "meshes": [], "compiled": []}


def test_a_compiled_function(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = compiled(step.__code__)
    found = seen(monkeypatch, modules, "in step", "in a comprehension", "in untouched")
    assert found["torch"] is True
    assert found["compiled"] == [
        [HERE, at("in step"), "step", ""],
        [HERE, at("in a comprehension"), "step", ""],
    ]


def test_a_function_that_is_inlined_into_a_compiled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = f"check_tensor(L['x'])  # return x + 1  # {HERE[-20:]}:{at('in helper')} in helper"
    modules = compiled(step.__code__, guard)
    found = seen(monkeypatch, modules, "in helper", "in untouched")
    assert found["compiled"] == [[HERE, at("in helper"), "helper", "step"]]


def test_a_torch_that_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = compiled(step.__code__)
    del modules["torch._C._dynamo.eval_frame"].__dict__["_debug_get_cache_entry_list"]
    assert seen(monkeypatch, modules, "in step")["compiled"] == []


def test_the_rank_that_torch_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch.distributed.distributed_c10d"
    world: Any = ModuleType(name)
    world.is_initialized, world.get_rank, world.get_world_size = (
        lambda: True,
        lambda: 3,
        lambda: 4,
    )
    monkeypatch.setitem(sys.modules, name, world)
    assert [["torch_rank"], [4], [3]] in json.loads(look([], True))["meshes"]
    assert json.loads(look([], False))["meshes"] == []


class DeviceMesh:
    """Two by two ranks."""

    mesh_dim_names = ("dp", "tp")
    mesh = SimpleNamespace(shape=(2, 2))

    def get_coordinate(self) -> list[int]:
        return [1, 0]


def test_meshes_are_found_where_the_program_makes_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    """To hold all objects while another thread makes a tuple of an iterator makes that fail."""
    name = "torch.distributed.device_mesh"
    library: Any = ModuleType(name)
    library.DeviceMesh = DeviceMesh
    monkeypatch.setitem(sys.modules, name, library)
    here = DeviceMesh()
    over = threading.Event()
    failures: list[SystemError] = []

    def program() -> None:
        try:
            while not over.is_set():
                tuple(number for number in range(300))
        except SystemError as error:
            failures.append(error)

    thread = threading.Thread(target=program)
    thread.start()
    told = [torch_state.meshes() for _ in range(40)]
    over.set()
    thread.join()
    assert failures == []
    assert {json.dumps([[["dp", "tp"], [2, 2], [1, 0]]])} == set(told)
    assert here.mesh_dim_names == ("dp", "tp")


def test_the_function_around_a_line() -> None:
    number = at("in helper")
    assert function_at(HERE, number) == ("helper", number - 1, number)
    assert function_at(HERE, 1) is None
