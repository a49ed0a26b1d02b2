"""Options: one table, five sources, and the origin of each value.

Strongest first: a flag, a `DAP_MUX_*` variable, an attribute in launch.json, `[tool.dap-mux]` in
the nearest pyproject.toml, the user's config file; then the default. `options` is the table,
with how each kind is read; `config` has the five places, the values typed and frozen, and what each
command passes to the session. A new option is one row and one field.
"""

from __future__ import annotations

from dap_mux.system.config.config import (
    AttachOptions,
    Config,
    JobOptions,
    LaunchOptions,
    Row,
    RunOptions,
)
from dap_mux.system.config.options import OPTIONS, Address, Option

__all__ = [
    "OPTIONS",
    "Address",
    "AttachOptions",
    "Config",
    "JobOptions",
    "LaunchOptions",
    "Option",
    "Row",
    "RunOptions",
]
