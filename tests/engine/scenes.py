"""Beginnings that many transcripts share."""

from __future__ import annotations

from typing import Any, Final

from dap_mux.engine.admission import Token
from tests.support.editors import DapeModel, Editor, NvimDapModel, VSCodeModel
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client, EditorClient

LINE: Final = 6
SETTLED: Final = 0.05
KINDS: Final = ("vscode", "neovim", "dape", "generic")


class _SomeEditor(VSCodeModel):
    """An editor that we know nothing of, and that takes the protocol at its word."""

    client_id = "some-editor"


_MODELS: Final[dict[str, type[Editor]]] = {
    "generic": _SomeEditor,
    "vscode": VSCodeModel,
    "neovim": NvimDapModel,
    "dape": DapeModel,
}


def introduce(client: Client, kind: str = "generic", **more: Any) -> None:
    """`initialize`, as of a client of this kind."""
    about = {"clientID": kind, "adapterID": "debugpy", "linesStartAt1": True}
    client.ask("initialize", **about, columnsStartAt1=True, pathFormat="path", **more)


def introduced(book: Playbook, name: str = "client", token: Token | None = None) -> Client:
    """A client that has sent `initialize`."""
    client = book.client(name, token)
    introduce(client)
    return client


def attach(client: Client, *, kind: str = "generic", **arguments: Any) -> None:
    """The usual order: initialize, attach, breakpoints, configurationDone."""
    introduce(client, kind)
    command = arguments.pop("command", "attach")
    client.ask(command, **{"justMyCode": True, **arguments})
    client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE}])
    client.ask("configurationDone")


def attached(book: Playbook, /, name: str = "client", **arguments: Any) -> Client:
    """A client that has been through the handshake, which another transcript shows."""
    client = book.client(name)
    count = len(book.ranks)
    ranks = f"{count} rank" + ("s" if count != 1 else "")
    with book.quietly(f"{ranks} attached, a breakpoint at {PATH}:{LINE}, {name} configured"):
        attach(client, **arguments)
    return client


def all_stopped(book: Playbook, line: int = LINE, *ranks: int) -> None:
    """These ranks (all without any) hit a breakpoint, and the clients are told."""
    numbers = ranks or tuple(number for _, number in book.ranks)
    with book.quietly(f"ranks {', '.join(map(str, numbers))} stop at line {line}"):
        for number in numbers:
            book.rank(number).hits(line)
        book.wait(0.1)
        book.wait(0.5)


def stopped(book: Playbook, /, *ranks: int, **arguments: Any) -> Client:
    """A client with these ranks (every rank without any) stopped at the same line."""
    client = attached(book, **arguments)
    all_stopped(book, LINE, *ranks)
    return client


def editing(book: Playbook, kind: str) -> EditorClient:
    """An editor that has been through its own handshake."""
    client = book.editor(_MODELS[kind]({PATH: [LINE]}))
    with book.quietly(f"{kind} attached to {len(book.ranks)} ranks"):
        client.press(client.editor.start({"justMyCode": True}))
        book.wait(0.5)
    return client


def states(client: Client) -> list[str]:
    """The ranks' states, as `list` says them to the client."""
    return [entry["state"] for entry in client.ask("list").body["ranks"]]


def told_by_us(client: Client) -> list[str]:
    """What the session itself has said to the client's user."""
    texts = (event["output"] for event in client.of("output"))
    return [text for text in texts if text.startswith("dap-mux: ")]


def frame_of(client: Client, thread: int) -> int:
    """Our id of a thread's top frame."""
    frames = client.ask("stackTrace", threadId=thread).body["stackFrames"]
    id: int = frames[0]["id"]
    return id


def locals_of(client: Client, thread: int) -> int:
    """Our reference of the local variables of a thread's top frame."""
    scopes = client.ask("scopes", frameId=frame_of(client, thread)).body["scopes"]
    reference: int = scopes[0]["variablesReference"]
    return reference


def reasons(client: Client) -> list[str | None]:
    """The ranks' reasons, as `list` says them to the client."""
    return [entry["reason"] for entry in client.ask("list").body["ranks"]]


def names(client: Client) -> list[str]:
    """The names of the client's rows."""
    return [row["name"] for row in client.ask("threads").body["threads"]]


def lines(book: Playbook) -> list[int]:
    """Where the ranks' programs are."""
    return [rank.program.line for rank in book.ranks.values()]


def stopped_ranks(book: Playbook) -> list[int]:
    """The numbers of the ranks that have stopped."""
    return [rank.number for rank in book.ranks.values() if rank.data.stopped]


def values_are(book: Playbook, name: str, *values: str) -> None:
    """What each rank has under this name."""
    for rank, value in zip(book.ranks.values(), values, strict=True):
        rank.data.values[name] = value
