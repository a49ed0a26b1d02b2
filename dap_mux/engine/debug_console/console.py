"""The commands of a debug console: one row each, the request it makes and how its answer reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from dap_mux.engine.debug_console.evaluate import Asked, Call, read
from dap_mux.engine.debug_console.merged_values import Values
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import aligned, did_you_mean
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import EXACT, Tolerance
from dap_mux.pure.rank_sets import split_leading, with_group
from dap_mux.pure.rank_sets.rank_rows import (
    COLUMNS,
    FOLD_ABOVE,
    Row,
    classes,
    count_text,
    id_of,
    qualified_function,
    reason,
)
from dap_mux.pure.rank_sets.world import label

_QUOTED: Final = 72  # characters of an unknown command that are repeated
OnBehalf: TypeAlias = Callable[[ClientRequest, str, Body, Callable[[Body, str], None]], None]
Displayed: TypeAlias = "str | Body"
"""A text, or the body of `evaluate`."""
_WITHIN: Final = re.compile(
    r"(?P<rest>.*\S)\s+within\s+(?P<number>[0-9.]+(?:e-?[0-9]+)?)(?P<percent>%?)"
)


class Console(Struct, eq=False):
    """The engine's part that carries out commands.

    `on_behalf` makes one of our requests for a client (`Requests.on_behalf`).
    """

    _core: SessionState
    _view: View
    _meshes: Meshes
    _values: Values
    _on_behalf: OnBehalf

    def call(self, request: ClientRequest, call: Call) -> None:
        """Carry out a command. Raises UsageError where there is no such command."""
        command = COMMANDS.get(call.name)
        if command is None:
            known = did_you_mean(f"%{call.name}", (f"%{name}" for name in COMMANDS))
            name = call.name[:_QUOTED]
            raise UsageError(f"no command %{name}: {known if name else 'see %help'}")
        command.run(self, request, call.rest)

    def _request(
        self,
        request: ClientRequest,
        command: str,
        arguments: Body,
        show: Callable[[Body], Displayed],
    ) -> None:
        def answered(body: Body, problem: str) -> None:
            if problem:
                to_clients.refuse(self._core, request, problem)
            else:
                self._say(request, show(body))

        self._on_behalf(request, command, arguments, answered)

    def _say(self, request: ClientRequest, shown: Displayed) -> None:
        body = {"result": shown, "variablesReference": 0} if isinstance(shown, str) else shown
        to_clients.respond(self._core, request, body)

    # The commands

    def help(self, request: ClientRequest, rest: str) -> None:
        rows = [
            (command.usage, command.about)
            for name, command in COMMANDS.items()
            if rest in ("", name)
        ]
        if not rows:
            known = did_you_mean(rest, COMMANDS)
            raise UsageError(f"no command %{rest[:_QUOTED]}: {known}")
        lines = aligned(rows)
        self._say(request, "\n".join([*lines, *([] if rest else [PYTHON])]))

    def list_ranks(self, request: ClientRequest, rest: str) -> None:
        form, _, ranks = rest.partition(" ")
        folded = FORMS.get(form)
        ranks = rest if folded is None else ranks.strip()
        arguments: Body = {"ranks": ranks} if ranks else {"states": ["stopped"]}
        self._request(request, "list", arguments, lambda body: of_list(body, folded=folded))

    def cast(self, request: ClientRequest, rest: str) -> None:
        ranks, command = split_leading(rest)

        def show(body: Body) -> Body:
            return self._values.of_cast(body, self._values.ranks_of(ranks))

        self._request(request, "cast", {"ranks": ranks, "command": command}, show)

    def compare(self, request: ClientRequest, rest: str) -> None:
        tolerance, within = EXACT, _WITHIN.fullmatch(rest)
        if within:
            share = 0.01 if within["percent"] else 1.0
            rest, tolerance = within["rest"], Tolerance(float(within["number"]) * share)
        if not rest:
            raise UsageError(f"compare what? {COMMANDS['compare'].usage}")
        meant = read(rest, "")
        asked = meant if isinstance(meant, Asked) else Asked("all", rest)
        self._values.evaluate(request, asked.ranks, asked.expression, tolerance)

    def focus(self, request: ClientRequest, rest: str) -> None:
        if rest:
            self._meshes.choose(request, with_group(rest), lambda ranks: self._go(request, ranks))
            return
        rank = focused(self._core, request.client)
        self._say(request, self._view.name_of(rank) if rank else "no rank is in focus")

    def _go(self, request: ClientRequest, ranks: list[Rank]) -> None:
        if len(ranks) != 1:
            raise UsageError(f"attach takes one rank, not {len(ranks)}")
        (rank,) = ranks
        arguments = {"rank": rank.number, "group": rank.id[0]}
        self._request(request, "focus", arguments, lambda body: self._place(rank, body))

    def _place(self, rank: Rank, body: Body) -> str:
        name = self._view.name_of(rank)
        base = (body["path"] or "").replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name} · {base}:{body['line']} in {body['function']}" if base else name

    def value(self, request: ClientRequest, name: str, rest: str) -> None:
        arguments: Body = {"value": rest} if rest else {}
        self._request(request, name, arguments, lambda body: f"{name}: {body['value']}")

    def ranks(self, request: ClientRequest, name: str, rest: str) -> None:
        if not rest:
            raise UsageError(f"which ranks? {COMMANDS[name].usage}")
        self._request(request, name, {"ranks": rest}, lambda _: f"{name}: {rest}")

    def groups(self, request: ClientRequest, rest: str) -> None:
        name, _, ranks = rest.partition(" ")
        arguments: Body = {"define": {"name": name, "ranks": ranks}} if name else {}
        if name == "delete":
            arguments = {"delete": ranks.strip()}
        self._request(request, "groups", arguments, of_groups)

    def mesh(self, request: ClientRequest, rest: str) -> None:
        groups = sorted({id[0] for id in self._core.ranks})

        def told(_: frozenset[str]) -> None:
            meshes = self._core.meshes
            known = [f"{group}: {meshes.get(group, 'no mesh is known')}" for group in groups]
            self._say(request, "\n".join(known) or "no rank is known yet")

        join = Join(self._core, groups, told)
        for group in groups:
            self._meshes.read(group, partial(join.arrive, group))


def of_list(body: Body, *, folded: bool | None = None) -> str:
    """Return `list` as a table; by default many ranks are folded to a row for each class."""
    ranks: list[Row] = body["ranks"]
    if folded or (folded is None and len(ranks) > FOLD_ABOVE):
        rows = [_cells(members) for members in classes(ranks)]
    else:
        rows = [_cells([row]) for row in ranks]
    counts = count_text(body["counts"])
    return "\n".join([*(aligned([COLUMNS, *rows]) if rows else []), counts or "no ranks"])


def _cells(members: list[Row]) -> tuple[str, ...]:
    first = members[0]
    hosts = {row["host"] for row in members}
    return (
        first["group"],
        label(map(id_of, members)),
        str(first["coords"] or "") if len(members) == 1 else "",
        (first["host"] or "") if len(hosts) == 1 else f"{len(hosts)} hosts",
        qualified_function(first),
        str(first["line"] or ""),
        first["state"],
        reason(first),
    )


def of_groups(body: Body) -> str:
    """`groups`, one line each: who is in it now, and how it was defined."""
    lines = [
        f"@{one['name']}: {one['ranks'] or '(empty)'}"
        + (f" ({one['definition']})" if one["definition"] != one["ranks"] else "")
        for one in body["groups"]
    ]
    return "\n".join(lines) or "no names yet"


FORMS: Final = {"classes": True, "full": False}
PYTHON: Final = "anything else is Python, for the rank in focus; `cast` and `attach` need no %"


class ConsoleCommand(NamedTuple):
    """`run` takes the request and the text behind its name. `takes` is for completion."""

    usage: str
    about: str
    run: Callable[[Console, ClientRequest, str], None]
    takes: tuple[str, ...] = ()


RANKS: Final = "RANKS"
PYTHON_TOO: Final = "EXPRESSION"

COMMANDS: Final[dict[str, ConsoleCommand]] = {
    "help": ConsoleCommand("%help [WORD]", "these lines", Console.help),
    "list": ConsoleCommand(
        "%list [classes|full] [RANKS]",
        "where ranks are: the stopped ones, or RANKS (%list all)",
        Console.list_ranks,
        (*FORMS, RANKS),
    ),
    "cast": ConsoleCommand(
        "cast RANKS COMMAND",
        "send a pdb command or expression to exactly these ranks",
        Console.cast,
        (RANKS, PYTHON_TOO),
    ),
    "compare": ConsoleCommand(
        "%compare [RANKS] EXPRESSION [within 1e-3|5%]",
        "compare ranks: equal values grouped, statistics, outliers",
        Console.compare,
        (RANKS, PYTHON_TOO),
    ),
    "attach": ConsoleCommand(
        "attach RANK", "move the focus to a stopped rank", Console.focus, (RANKS,)
    ),
    "focus": ConsoleCommand(
        "%focus [RANK]", "show the rank in focus, or move the focus", Console.focus, (RANKS,)
    ),
    "scope": ConsoleCommand(
        "%scope [auto|rank|class|all]",
        "what continue, pause and steps act on",
        lambda console, request, rest: console.value(request, "scope", rest),
        ("auto", "rank", "class", "all"),
    ),
    "view": ConsoleCommand(
        "%view [auto|ranks|classes]",
        "a thread for each rank, or for each class of ranks",
        lambda console, request, rest: console.value(request, "view", rest),
        ("auto", "ranks", "classes"),
    ),
    "groups": ConsoleCommand(
        "%groups [NAME RANKS | delete NAME]",
        "names for rank sets, as in @NAME",
        Console.groups,
        ("delete", RANKS),
    ),
    "mesh": ConsoleCommand(
        "%mesh", "each group's dimensions, read again from its ranks", Console.mesh
    ),
    "release": ConsoleCommand(
        "%release RANKS",
        "detach these ranks; they run on",
        lambda console, request, rest: console.ranks(request, "release", rest),
        (RANKS,),
    ),
    "drop": ConsoleCommand(
        "%drop RANKS",
        "remove these ranks from the session; the others go on",
        lambda console, request, rest: console.ranks(request, "drop", rest),
        (RANKS,),
    ),
}
