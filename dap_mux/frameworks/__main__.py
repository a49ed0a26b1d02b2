"""`PYTHON dap_mux/frameworks ENGINE OPTIONS`: report the ranks of an engine's cluster.

OPTIONS is a JSON object; `endpoint` is what followed `ENGINE:` in the user's endpoint.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def main(arguments: list[str]) -> None:
    """Run the module of one engine to its end."""
    engine, options = arguments
    _make_importable()
    import_module(f"dap_mux.frameworks.{engine}_cluster").main(json.loads(options))


def _make_importable() -> None:
    """Make `dap_mux.frameworks` importable, and no module of it by its bare name (`import ray`)."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    package = sys.modules["dap_mux"] = ModuleType("dap_mux")
    package.__path__ = [str(HERE.parent)]


if __name__ == "__main__":
    main(sys.argv[1:])
