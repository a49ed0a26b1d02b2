"""The record of communication calls where torch is not as expected; else launchers/test_comm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dap_mux.rank import api

C10D = "class ProcessGroup: pass\nclass Work: pass\n"
OLD = """\
__version__ = "1.0"
class library: pass
from torch.distributed import distributed_c10d
"""
PROGRAM = """\
import sys
from dap_mux.rank.comm import switch
switch.begin("time", print)
import torch
print("goes on", switch.record(), switch._state.finder in sys.meta_path)
"""


LATE = """\
import sys, threading
from dap_mux.rank.comm import switch

class Disk:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            looks.set()
            assert begun.wait(30)

def begin():
    assert looks.wait(30)
    switch.begin("time", lambda text: (print(text), said.set()))
    begun.set()

looks, begun, said = threading.Event(), threading.Event(), threading.Event()
sys.meta_path.insert(0, Disk())
threading.Thread(target=begin).start()
import torch
assert said.wait(30)
"""


def output(folder: Path, torch: str, program: str = PROGRAM, *words: str) -> list[str]:
    """What a program prints that imports a torch of this text."""
    package = folder / "torch"
    (package / "distributed").mkdir(parents=True)
    (package / "__init__.py").write_text(torch)
    (package / "distributed" / "__init__.py").touch()
    (package / "distributed" / "distributed_c10d.py").write_text(C10D)
    source = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(Path.cwd())!r}]\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", source, *words],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_torch_that_is_too_old_is_named_and_the_program_goes_on(tmp_path: Path) -> None:
    said, after = output(tmp_path, OLD)
    assert said.startswith("records no communication calls with torch 1.0: AttributeError:")
    assert after == "goes on None False"


def test_a_torch_without_distributed_is_left_alone(tmp_path: Path) -> None:
    assert output(tmp_path, "") == ["goes on None True"]


@pytest.fixture
def _old_mpi4py(tmp_path: Path) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text('__version__ = "1.0"')
    (tmp_path / "mpi4py" / "MPI.py").write_text("class Request: pass\nIN_PLACE = None")


@pytest.mark.usefixtures("_old_mpi4py")
def test_an_mpi4py_that_is_too_old_is_named_and_the_program_goes_on(tmp_path: Path) -> None:
    said, after = output(tmp_path, "import mpi4py.MPI")
    assert said.startswith("records no calls with mpi4py 1.0: AttributeError:")
    assert after == "goes on None True"


@pytest.mark.usefixtures("_old_mpi4py")
@pytest.mark.parametrize(
    ("name", "torch", "which"),
    [
        ("torch", OLD, "communication calls with torch"),
        ("torch.distributed.distributed_c10d", OLD, "communication calls with torch"),
        ("mpi4py.MPI", "import mpi4py.MPI", "calls with mpi4py"),
    ],
)
def test_a_watch_that_comes_while_a_module_is_looked_for_begins_once_it_is_there(
    name: str, torch: str, which: str, tmp_path: Path
) -> None:
    (said,) = output(tmp_path, torch, LATE, name)
    assert said.startswith(f"records no {which} 1.0: AttributeError:")


def test_off_loads_nothing_and_another_word_is_refused() -> None:
    source = """if True:
        import sys
        before = [*sys.meta_path]
        from dap_mux.rank import api
        api._record_calls(api.place_of({}), "off")
        print(sys.meta_path == before, "dap_mux.rank.comm.switch" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
    with pytest.raises(ValueError, match="comm=all: must be one of off, time, finite, hash"):
        api.listen(0, comm="all")
