"""`dap-mux cast` and `dap-mux compare`: send one request as an observer, and leave."""

from __future__ import annotations

import sys
from argparse import Namespace

from dap_mux.frontends.cli.execution import load_config
from dap_mux.frontends.cli.listings import Body, present, split_session
from dap_mux.frontends.console.results import IN_MAIN, show_cast, show_compare
from dap_mux.pure.errors import UsageError
from dap_mux.system.config import Config
from dap_mux.system.session_files import SessionFile, find

RANK_TIMEOUT_S = 5.0
SESSION_TIMEOUT_S = 10.0  # beyond the time of its ranks


def cast(args: Namespace) -> int:
    """Send a command to ranks; 1 if one of them failed or did not respond."""
    from dap_mux.pure.rank_sets import split_leading

    session, arguments = split_optional_session(args.arguments)
    ranks, command = split_leading(" ".join(arguments))
    timeout = seconds(args.timeout)
    request = {"ranks": ranks, "command": command, "timeout": timeout}
    body = send(session, load_config(args), "cast", request, timeout)
    present(args, body, lambda screen, body: show_cast(screen, {**body, "inMain": ""}))
    if body["inMain"] and not args.json:  # scripts read values from standard output
        print(f"dap-mux: {{{body['inMain']}}}: {IN_MAIN}", file=sys.stderr)
    return 1 if body["errors"] or body["missing"] else 0


def compare(args: Namespace) -> int:
    """Compare an expression's values; 1 if a rank did not respond."""
    session, arguments = split_optional_session(args.arguments)
    request: Body = {"expression": " ".join(arguments)}
    if args.ranks is not None:
        from dap_mux.pure.rank_sets import parse, with_group

        request["ranks"] = with_group(args.ranks)
        parse(request["ranks"])  # report a mistake before connecting
    if args.tolerance is not None:
        request["tolerance"] = number(args.tolerance, "--tolerance")
    body = send(session, load_config(args), "compare", request, RANK_TIMEOUT_S)
    present(args, body, show_compare)
    return 1 if body.get("errors") or body["missing"] else 0


def split_optional_session(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Split off SESSION; a single argument is never one."""
    return split_session(arguments) if len(arguments) > 1 else (None, arguments)


def seconds(text: str) -> float:
    """Parse `--timeout`. Raises UsageError."""
    value = number(text, "--timeout")
    if value <= 0:
        raise UsageError(f"--timeout {text}: must be greater than 0 seconds")
    return value


def number(text: str, flag: str) -> float:
    """Parse a number that is not negative. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise UsageError(f"{flag} {text}: must be a number of 0 or more")
    return value


def send(
    session: str | None, config: Config, command: str, arguments: Body, timeout: float
) -> Body:
    """Join, send one request and leave."""
    import anyio

    return anyio.run(_send, find(session), config, command, arguments, timeout)


async def _send(
    session: SessionFile, config: Config, command: str, arguments: Body, timeout: float
) -> Body:
    from dap_mux.frontends.cli.join import observer

    async with observer(session, config, f"dap-mux {command}") as client:
        return await client.request(command, arguments, timeout=timeout + SESSION_TIMEOUT_S)
