"""`dap-mux list`: join a session as an observer, ask once where its ranks are, and leave."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from dap_mux.cli.execution import load_config
from dap_mux.config import Config
from dap_mux.session_files import HOST_PORT, SessionFile, find

if TYPE_CHECKING:
    from dap_mux.console.screen import Screen

LOWEST_PORT = 1024  # `job:3` is rank 3 of group job, `job:5677` a session on host job


def main(args: Namespace) -> int:
    """Print the ranks as a table, or the answer itself as JSON."""
    import anyio

    from dap_mux.console.screen import screen_for_stdout
    from dap_mux.console.tables import list_words
    from dap_mux.rank_sets import parse

    session, words = split(args.words)
    ranks, how = list_words(" ".join(words), default="all")
    parse(ranks)  # a mistake is pointed at before anybody is asked
    body = anyio.run(fetch, find(session), ranks, load_config(args))
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        show(screen_for_stdout(), body, how)
    return 0


def split(words: list[str]) -> tuple[str | None, list[str]]:
    """Tell SESSION, the first word if it reads as one, from what follows."""
    return (words[0], words[1:]) if words and names_session(words[0]) else (None, words)


def names_session(text: str) -> bool:
    """Whether a word reads as HOST:PORT or as a session file's path."""
    match = HOST_PORT.fullmatch(text)
    return (
        text.endswith(".json")
        or "/" in text
        or (match is not None and int(match[3]) >= LOWEST_PORT)
    )


async def fetch(session: SessionFile, ranks: str, config: Config) -> dict[str, Any]:
    """Ask a session for its ranks. Raises what `joined` does."""
    from dap_mux.cli.joining import PATIENCE, joined

    async with joined(session, config, "dap-mux list") as client:
        return await client.request("list", {"ranks": ranks}, timeout=PATIENCE)


def show(screen: Screen, body: dict[str, Any], how: str) -> None:
    """Show the answer of `list`."""
    from dap_mux.console.tables import ranks_table

    ranks = body["ranks"]
    if not ranks:
        screen.say("no ranks")
        return
    screen.table(ranks_table(ranks, how))
    states = ", ".join(f"{count} {state}" for state, count in body["counts"].items() if count)
    workers = sum(row["worker"] is not None for row in ranks)
    counts = [_count(len(ranks) - workers, "rank")] + [_count(workers, "worker")] * bool(workers)
    screen.say(f"{' and '.join(counts)}: {states}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")
