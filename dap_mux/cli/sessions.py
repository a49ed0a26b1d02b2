"""`dap-mux sessions`: list this user's sessions on this machine, without their tokens."""

from __future__ import annotations

import json
import time
from argparse import Namespace

from dap_mux.cli.table import columns
from dap_mux.session_files import HOW_TO_START, SessionFile, running


def main(args: Namespace) -> int:
    """Print the running sessions, oldest first; having none is not a failure."""
    sessions = running()
    if args.json:
        print(
            json.dumps(
                [{**session.public(), "started": session.started} for session in sessions], indent=1
            )
        )
    elif sessions:
        print(columns(("SESSION", "PID", "GROUPS", "STARTED"), [_row(each) for each in sessions]))
    else:
        print(f"you have no running session on this machine; {HOW_TO_START}")
    return 0


def _row(session: SessionFile) -> tuple[object, ...]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.started))
    return session.address, session.pid, ",".join(session.groups), started
