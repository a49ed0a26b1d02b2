"""`PYTHON dap_mux/rank/frameworks ENGINE OPTIONS`: report the ranks of an engine's cluster.

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
    import_module(f"dap_mux.rank.frameworks.{engine}_cluster").main(json.loads(options))


def _make_importable() -> None:
    """Make this package importable, and no module of it by its bare name (`import ray`)."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    package = sys.modules["dap_mux"] = ModuleType("dap_mux")
    package.__path__ = [str(HERE.parents[1])]


if __name__ == "__main__":
    main(sys.argv[1:])
