"""`dap-mux cast` and `dap-mux compare`: one question to many ranks, as an observer, and away."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from dap_mux.cli.execution import load_config
from dap_mux.cli.list_ranks import names_session
from dap_mux.config import Config
from dap_mux.errors import UsageError
from dap_mux.session_files import SessionFile, find

TIMEOUT = 5.0  # s for ranks to answer
MORE = 10.0  # s beyond that for the session itself
Body = dict[str, Any]


def cast(args: Namespace) -> int:
    """Send a command to ranks; 1 where one of them failed or did not answer."""
    from dap_mux.rank_sets import split_leading

    session, words = split_session(args.words)
    ranks, command = split_leading(" ".join(words))
    timeout = seconds(args.timeout)
    asked = {"ranks": ranks, "command": command, "timeout": timeout}
    body = ask(session, load_config(args), "cast", asked, timeout)
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        from dap_mux.console.answers import show_cast
        from dap_mux.console.screen import screen_for_stdout

        show_cast(screen_for_stdout(), body)
    return 1 if body["errors"] or body["missing"] else 0


def compare(args: Namespace) -> int:
    """Compare an expression's values; 1 where a rank did not answer."""
    session, words = split_session(args.words)
    asked: Body = {"expression": " ".join(words)}
    if args.ranks is not None:
        from dap_mux.rank_sets import parse, with_group

        asked["ranks"] = with_group(args.ranks)
        parse(asked["ranks"])  # a mistake is pointed at before anybody is asked
    if args.tolerance is not None:
        asked["tolerance"] = number(args.tolerance, "--tolerance")
    body = ask(session, load_config(args), "compare", asked, TIMEOUT)
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        from dap_mux.console.answers import show_compare
        from dap_mux.console.screen import screen_for_stdout

        show_compare(screen_for_stdout(), body)
    return 1 if body.get("errors") or body["missing"] else 0


def split_session(words: list[str]) -> tuple[str | None, list[str]]:
    """Tell SESSION in front from the words behind it."""
    if len(words) > 1 and names_session(words[0]):
        return words[0], words[1:]
    return None, words


def seconds(text: str) -> float:
    """Read `--timeout`. Raises UsageError."""
    value = number(text, "--timeout")
    if value <= 0:
        raise UsageError(f"--timeout {text}: allowed: seconds above 0")
    return value


def number(text: str, flag: str) -> float:
    """Read a number from 0. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise UsageError(f"{flag} {text}: allowed: a number from 0")
    return value


def ask(session: str | None, config: Config, command: str, arguments: Body, timeout: float) -> Body:
    """Join, ask once and leave."""
    import anyio

    return anyio.run(_ask, find(session), config, command, arguments, timeout)


async def _ask(
    session: SessionFile, config: Config, command: str, arguments: Body, timeout: float
) -> Body:
    from dap_mux.cli.joining import joined

    async with joined(session, config, f"dap-mux {command}") as client:
        return await client.request(command, arguments, timeout=timeout + MORE)
