"""Makes messages late at random, and splits them, so that what holds by chance only shows.

`pytest -n 2 --late tests/lsp`: every process of the run (pytest's workers, sessions, ranks and
their debuggers, editors) sleeps for a moment before or after some of what it sends, and after some
of what it receives, of which it may get a few bytes only at a time. So an assertion fails that
follows from no message which was waited for. This finds other races than `--shake`: those between
two messages that nearly always come together.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_suffix(".c")
_PRELOAD: Final = "LD_PRELOAD"


@contextmanager
def late_messages() -> Iterator[None]:
    """Until we leave, processes that are started begin with it; Linux and a C compiler only."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "late_messages.so"
        words = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", str(SOURCE)]
        subprocess.run([*words, "-o", str(library), "-ldl"], check=True)
        os.environ[_PRELOAD] = str(library)
        try:
            yield
        finally:
            del os.environ[_PRELOAD]
