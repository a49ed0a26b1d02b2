"""The names of files in code that is shipped by value, with cloudpickle as it comes."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.tools import environment

pytestmark = [pytest.mark.heavy, pytest.mark.real]
ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = textwrap.dedent("""\
    import pickle, subprocess, sys
    import cloudpickle
    sys.path.append({root!r})
    from dap_mux.rank.pickled_code import keep_file_names

    def outer():
        def inner():
            pass
        return inner

    if sys.argv[1] == "written":
        keep_file_names()
    sent = cloudpickle.dumps(outer)
    reader = (
        "import pickle, sys; sys.path.append({root!r}); import cloudpickle;"
        "from dap_mux.rank.pickled_code import keep_file_names;"
        "keep_file_names() if sys.argv[1] == 'loaded' else None;"
        "outer = pickle.load(sys.stdin.buffer);"
        "print(outer.__code__.co_filename, outer().__code__.co_filename);"
        "again = pickle.loads(cloudpickle.dumps(outer));"
        "print(again.__code__.co_name)"
    )
    subprocess.run([sys.executable, "-c", reader, sys.argv[1]], input=sent, check=True)
    """)


@pytest.mark.parametrize("where", ["written", "loaded"])
def test_code_keeps_the_name_of_its_file(tmp_path: Path, where: str) -> None:
    """By the process that pickles it, or by the one that gets it."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=str(ROOT)), "utf-8")
    command = [str(environment("dask") / "python"), str(program), where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{program} {program}\nouter\n", done.stderr
