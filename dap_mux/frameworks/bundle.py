"""A zip file that makes a worker a rank: workers on other hosts have no files of ours."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PARTS = ("rank", "injected", "frameworks")
TRACERS = "pydevd_attach_to_process/attach_*.[sd][oy]*"  # .so and .dylib


def rank_bundle(debugpy: str = "") -> bytes:
    """Return a zip of `dap_mux.rank`, `dap_mux.injected` and this package.

    `debugpy`: the folder of a debugpy for workers without one. Of its compiled parts only those are
    taken by which it traces running threads: the others fit one version of Python alone.
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as bundle:
        for part in PARTS:
            for file in _sources(PACKAGE / part):
                bundle.write(file, f"dap_mux/{file.relative_to(PACKAGE)}")
        bundle.write(PACKAGE / "__init__.py", "dap_mux/__init__.py")
        for file in _files_of(Path(debugpy)) if debugpy else ():
            bundle.write(file, f"debugpy_of_dap_mux/debugpy/{file.relative_to(debugpy)}")
    return data.getvalue()


def _files_of(debugpy: Path) -> Iterator[Path]:
    yield from _sources(debugpy)
    yield from sorted(debugpy.rglob(TRACERS))


def _sources(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.py"))
