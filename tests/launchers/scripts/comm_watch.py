"""Shared by scripts that inspect the record of communication: `comm`, and a way to report it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))
comm: Any = import_module("dap_mux.rank.comm.switch")


def tell(what: str, value: object) -> None:
    """Print a line of JSON behind a word, in one piece: ranks share the stream."""
    sys.stdout.write(f"{what} {json.dumps(value)}\n")
    sys.stdout.flush()
