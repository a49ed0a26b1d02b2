"""`dap-mux why`: what keeps a job from moving on, in one sentence, with evidence."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any, Final

import anyio

from dap_mux.cli.execution import load_config
from dap_mux.cli.list_ranks import split_session
from dap_mux.config import Config
from dap_mux.rank_sets import parse, with_group
from dap_mux.session_files import SessionFile, find

LIST_TIMEOUT_S: Final = 10.0
RESPONSE_TIMEOUT_S: Final = 20.0
NOBODY_DEBUGS: Final = "waiting"
"""The state of ranks that no debugger has been attached to."""


def main(args: Namespace) -> int:
    """Show the verdict; the exit code is the verdict's."""
    session, arguments = split_session(args.arguments)
    ranks = with_group(" ".join(arguments) or "all")
    parse(ranks)  # report a mistake before connecting
    body = anyio.run(_ask, find(session), load_config(args), ranks)
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        from dap_mux.console.screen import screen_for_stdout
        from dap_mux.console.verdict import show_verdict

        show_verdict(screen_for_stdout(), body)
    from dap_mux.insight.why.verdicts import EXIT_CODES

    return EXIT_CODES[body["verdict"]]


async def _ask(session: SessionFile, config: Config, ranks: str) -> dict[str, Any]:
    """Ask as an observer; where nobody has attached to the ranks, do so for as long as it takes."""
    from dap_mux.cli.join import controller, observer

    async with observer(session, config, "dap-mux why") as client:
        listed = await client.request("list", {"ranks": ranks}, timeout=LIST_TIMEOUT_S)
        if any(rank["state"] != NOBODY_DEBUGS for rank in listed["ranks"]):
            return await client.request("why", {"ranks": ranks}, timeout=RESPONSE_TIMEOUT_S)
    debugger = await controller(session, config, {})
    try:
        return await debugger.request("why", {"ranks": ranks}, timeout_s=RESPONSE_TIMEOUT_S)
    finally:
        await debugger.disconnect()
