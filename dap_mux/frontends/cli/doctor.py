"""`dap-mux doctor`: diagnose problems; exits with 0 if there are none, 1 if a cause is found."""

from __future__ import annotations

import json
from argparse import Namespace
from functools import partial
from pathlib import Path

from dap_mux.frontends.cli.execution import load_config
from dap_mux.system.config import Config


def main(args: Namespace) -> int:
    """Print the findings; return 1 if there are any."""
    import anyio

    return anyio.run(_examine, args, load_config(args), Path.cwd())


async def _examine(args: Namespace, config: Config, folder: Path) -> int:
    from dap_mux.frontends.cli.join import observer
    from dap_mux.frontends.doctor import causes
    from dap_mux.frontends.doctor.causes import examine
    from dap_mux.frontends.doctor.gather import gathered

    join = partial(observer, config=config, name="dap-mux doctor")
    async with gathered(args.targets, args.file, args.pythons, folder, join) as observed:
        findings = await examine(observed)
    if args.json:
        print(json.dumps(causes.as_json(observed, findings), indent=1))
    else:
        print(causes.as_text(observed, findings))
    return 1 if findings else 0
