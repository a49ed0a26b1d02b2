"""`dap-mux config show`: each option's value, and where it was set."""

from __future__ import annotations

import json
from argparse import Namespace

from dap_mux.cli.execution import load_config
from dap_mux.cli.table import columns


def main(args: Namespace) -> int:
    """Print the options that are effective in this folder."""
    rows = load_config(args).explain()
    if args.json:
        plain = {row.name: {"value": row.value, "origin": row.origin} for row in rows}
        print(json.dumps(plain, indent=1))
    else:
        lines = [(row.name, json.dumps(row.value), row.origin) for row in rows]
        print(columns(("OPTION", "VALUE", "FROM"), lines))
    return 0
