"""`dap-mux doctor`: diagnose problems; exits with 0 if there are none, 1 if a cause is found."""

from __future__ import annotations

import json
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dap_mux.frontends.cli.execution import load_config
from dap_mux.system.config import Config

if TYPE_CHECKING:
    from dap_mux.frontends.doctor.gather import DoctorOptions


def main(args: Namespace) -> int:
    """Print the findings; return 1 if there are any."""
    import anyio

    from dap_mux.frontends.doctor.gather import DoctorOptions

    options = DoctorOptions(tuple(args.targets), tuple(args.file), tuple(args.pythons), Path.cwd())
    return anyio.run(_examine, options, load_config(args), args.json)


async def _examine(options: DoctorOptions, config: Config, as_json: bool) -> int:
    from dap_mux.frontends.cli.join import observer
    from dap_mux.frontends.doctor import causes
    from dap_mux.frontends.doctor.causes import examine
    from dap_mux.frontends.doctor.gather import gathered

    join = partial(observer, config=config, name="dap-mux doctor")
    async with gathered(options, join) as observed:
        findings = await examine(observed)
    if as_json:
        print(json.dumps(causes.as_json(observed, findings), indent=1))
    else:
        print(causes.as_text(observed, findings))
    return 1 if findings else 0
