"""Which collectives the statement calls that a rank is about to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.frontends.mcp.left_behind import called

SOURCE: Final = """\
for batch in batches:
    if dist.get_rank() == 0:
        comm.Bcast(
            batch, root=0)
    loss.backward()
    total = all_reduce_sum(loss) + len(batch)
    x = {name: dist.all_gather(y) for name, y in items}
with open(path) as file:
    dist.barrier()
"""


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        (1, set()), (2, set()), (3, {"Bcast"}), (4, {"Bcast"}), (5, {"backward"}),
        (6, {"all_reduce_sum"}), (7, {"all_gather"}), (8, set()), (9, {"barrier"}), (99, set()),
    ],
)  # fmt: skip
def test_calls_of_a_line(tmp_path: Path, line: int, calls: set[str]) -> None:
    path = tmp_path / "job.py"
    path.write_text(SOURCE)
    row: Any = {"path": str(path), "line": line}
    assert {*called(row)} == calls


@pytest.mark.parametrize(
    "source", [b"def (", b"\x00", b"\xff", b"(" * 100_000, b"", b"1+" * 60_000]
)
def test_a_file_that_is_no_python_tells_nothing(tmp_path: Path, source: bytes) -> None:
    path = tmp_path / "job.py"
    path.write_bytes(source)
    for where in (str(path), str(tmp_path / "none.py"), "/dev/zero", ""):
        row: Any = {"path": where, "line": 1}
        assert not [*called(row)]
