"""Options: one table, five sources, and the origin of each value.

Strongest first: a flag, a `DAP_MUX_*` variable, an attribute in launch.json, `[tool.dap-mux]` in
the nearest pyproject.toml, the user's config file; then the default. `options` is the table,
`values` how each kind is read, `sources` the five places, `config` the values typed and frozen,
`command_options` what a command passes to the session. A new option is one row and one field.
"""

from __future__ import annotations

from dap_mux.config.command_options import (
    AdapterOptions,
    AttachOptions,
    LaunchOptions,
    RerunOptions,
    RunOptions,
)
from dap_mux.config.config import Config, Origin, Row
from dap_mux.config.options import OPTIONS, Option
from dap_mux.config.values import Address

__all__ = [
    "OPTIONS",
    "AdapterOptions",
    "Address",
    "AttachOptions",
    "Config",
    "LaunchOptions",
    "Option",
    "Origin",
    "RerunOptions",
    "Row",
    "RunOptions",
]
