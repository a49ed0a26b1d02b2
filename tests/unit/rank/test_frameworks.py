"""What torch, mpi4py and jax say of a process's rank, and when; small stand-ins for the three."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

from dap_mux.rank.libraries import watch_import

TORCH: Final = """
joined = []
def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None
):
    "Of torch."
    joined.append((rank, world_size))
def get_rank():
    return 2
def get_world_size():
    return 4
"""
JAX: Final = "def initialize(coordinator_address=None, num_processes=None, process_id=None): ..."
MPI: Final = """
class COMM_WORLD:
    Get_rank = staticmethod(lambda: 1)
    Get_size = staticmethod(lambda: size)
begun = []
Init = lambda: begun.append("Init")
Init_thread = lambda level: begun.append(level)
Is_initialized = lambda: at_import
"""
Said = list[tuple[Any, ...]]


class Program:
    """A process that is watched, whose library is `text`."""

    def __init__(self, folder: Path, name: str, text: str) -> None:
        self.said: Said = []
        path = folder / "library.py"
        path.write_text(text, "utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        self.module: Any = importlib.util.module_from_spec(spec)
        watch_import(spec.loader, name, self._tell)
        spec.loader.exec_module(self.module)

    def _tell(self, *words: Any) -> None:
        self.said.append((*words, *getattr(self.module, "joined", ())))


def torch(folder: Path) -> Program:
    return Program(folder, "torch.distributed.distributed_c10d", TORCH)


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("gloo",), {"rank": 3, "world_size": 4}),
        (("gloo", "tcp://node1:29500", None, 4, 3), {}),
    ],
)
def test_torch_is_heard_before_it_meets_the_other_ranks(
    tmp_path: Path, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    program = torch(tmp_path)
    program.module.init_process_group(*arguments, **options)
    assert program.said == [("torch", 3, 4)]
    assert program.module.joined == [(3, 4)]


def test_what_torch_reads_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = torch(tmp_path)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    program.module.init_process_group()
    program.module.init_process_group(rank=0)
    assert [words[:3] for words in program.said] == [("torch", 1, 2), ("torch", 0, 2)]


def test_a_rank_that_torch_has_from_elsewhere_is_known_when_it_has_it(tmp_path: Path) -> None:
    """From the URL, from MPI: it asks them in the call."""
    program = torch(tmp_path)
    program.module.init_process_group("mpi")
    assert program.said == [("torch", 2, 4, (-1, -1))]


def test_wrong_arguments_are_torchs_to_refuse(tmp_path: Path) -> None:
    program = torch(tmp_path)
    with pytest.raises(TypeError, match=r"init_process_group\(\) got an unexpected"):
        program.module.init_process_group(ranks=3)
    program.module.init_process_group(rank="3", world_size=4)
    assert program.said == [("torch", 2, 4, ("3", 4))]


def test_the_watched_function_looks_as_it_did(tmp_path: Path) -> None:
    program = torch(tmp_path)
    function = program.module.init_process_group
    assert (function.__name__, function.__doc__) == ("init_process_group", "Of torch.")
    assert function.__module__ == program.module.__name__


def test_jax_passes_its_rank_or_has_found_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SimpleNamespace(global_state=SimpleNamespace(process_id=5, num_processes=8))
    monkeypatch.setitem(sys.modules, "jax._src.distributed", state)
    program = Program(tmp_path, "jax.distributed", JAX)
    program.module.initialize("node1:1234", 8, 0)
    program.module.initialize()
    assert program.said == [("jax", 0, 8), ("jax", 5, 8)]


def test_jax_that_has_changed_is_no_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax._src.distributed", ModuleType("distributed"))
    program = Program(tmp_path, "jax.distributed", JAX)
    program.module.initialize()
    assert program.said == []


@pytest.mark.parametrize(("size", "said"), [(2, [("mpi4py", 1, 2)]), (1, [])])
def test_mpi_that_starts_in_its_import(tmp_path: Path, size: int, said: Said) -> None:
    """A Python without a launcher is rank 0 of 1 in MPI: that says nothing."""
    text = f"size, at_import = {size}, True\n{MPI}"
    program = Program(tmp_path, "mpi4py.MPI", text)
    assert program.said == said


def test_mpi_that_the_program_starts(tmp_path: Path) -> None:
    program = Program(tmp_path, "mpi4py.MPI", f"size, at_import = 2, False\n{MPI}")
    assert program.said == []
    program.module.Init_thread(3)
    assert program.said == [("mpi4py", 1, 2)]
    program.module.Init()
    assert program.module.begun == [3, "Init"]


def test_a_library_that_has_nothing_of_this_is_imported_all_the_same(tmp_path: Path) -> None:
    program = Program(tmp_path, "torch.distributed.distributed_c10d", "value = 1")
    assert program.module.value == 1


def test_a_loader_that_takes_no_attribute(tmp_path: Path) -> None:
    class Strict:
        __slots__ = ()

        def exec_module(self, module: ModuleType) -> None: ...

    loader = Strict()
    watch_import(loader, "jax.distributed", lambda *_: None)
    loader.exec_module(ModuleType("jax.distributed"))
