"""A PATH that has the native debuggers which a test wants, and nothing else.

`failing-gdb` is the real one, which cannot write registers, as on some processors.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).with_name("failing_register_writes.c")


def path_with(folder: Path, *names: str) -> str:
    """A PATH of `names` alone: gdb, lldb, failing-gdb; the test is skipped without one of them."""
    folder.mkdir()
    for name in names:
        real = shutil.which(name.removeprefix("failing-"))
        if real is None:
            pytest.skip(f"{name} is not here: tests/launchers/install gdb lldb")
        if name == "failing-gdb":
            _failing_gdb(folder / "gdb", real)
        else:
            (folder / name).symlink_to(real)
    return str(folder)


def _failing_gdb(place: Path, real: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("it takes a C compiler, and x86-64")
    library = place.with_name("failing_register_writes.so")
    words = [compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Werror", str(SOURCE)]
    subprocess.run([*words, "-o", str(library), "-ldl"], check=True)
    place.write_text(f'#!/bin/sh\nexec /usr/bin/env LD_PRELOAD={library} {real} "$@"\n', "utf-8")
    place.chmod(0o755)
