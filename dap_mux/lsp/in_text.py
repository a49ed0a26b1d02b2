"""What is shown in the text of a program: where ranks stand, and what names are worth there."""

from __future__ import annotations

from typing import Final

from lsprotocol import types

from dap_mux.lsp import text
from dap_mux.lsp.expressions import Page
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.server import Server
from dap_mux.printable import one_line

LIMIT: Final = 1.0  # s that ranks may take to say a value
RUN_LIMIT: Final = 5.0  # s that ranks may take to be on their way
RUN_ALL_HERE: Final = "dap-mux.runAllHere"


def hints(ls: Server, asked: types.InlayHintParams) -> list[types.InlayHint]:
    """`● 0-3` at the end of each line where ranks stand."""
    document = ls.workspace.get_text_document(asked.text_document.uri)
    positions = Positions(ls, document)
    first, last = asked.range.start.line, min(asked.range.end.line, positions.lines - 1)
    return [
        types.InlayHint(
            position=positions.end(each.line - 1),
            label=text.mark(each),
            tooltip=text.why(each),
            padding_left=True,
        )
        for each in ls.standing(document.uri)
        if first <= each.line - 1 <= last
    ]


async def hover(ls: Server, asked: types.HoverParams) -> types.Hover | None:
    """Show an expression's value in the ranks that are stopped in this very function."""
    document = ls.workspace.get_text_document(asked.text_document.uri)
    standing = ls.standing(document.uri)
    page = Page.read(document.source) if standing else None
    if page is None:
        return None
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    found = page.expression_at(line, column)
    here = [id for each in standing if page.same_function(each.line, line) for id in each.ids]
    ranks = ls.following.picture.name((id[0], id[1]) for id in here if len(id) == 2)
    if found is None or not ranks:
        return None
    question = {"expression": found.text, "ranks": ranks, "frame": 0, "timeout": LIMIT}
    body = await ls.following.ask("compare", question, 2 * LIMIT)
    shown = text.values(found.text, body, markdown=ls.markdown) if body else None
    if shown is None:
        return None
    kind = types.MarkupKind.Markdown if ls.markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, shown), positions.of(found))


def lenses(ls: Server, asked: types.CodeLensParams) -> list[types.CodeLens]:
    """*Run all here* above each line where some ranks stand and others do not."""
    document = ls.workspace.get_text_document(asked.text_document.uri)
    positions = Positions(ls, document)
    return [
        types.CodeLens(
            positions.whole(each.line - 1),
            types.Command("Run all here", RUN_ALL_HERE, arguments=[each.path, each.line]),
        )
        for each in ls.standing(document.uri)
        if ls.following.picture.elsewhere(each)
    ]


async def run_all_here(ls: Server, path: str, line: int) -> None:
    """Let the ranks that are elsewhere run on to where others stand; who cannot stays."""
    here = [one for one in ls.following.picture.standing(path) if one.line == line]
    ranks = ls.following.picture.elsewhere(here[0]) if here else ""
    if not ranks:
        return
    order = {"ranks": ranks, "command": f"unt {path}:{line}", "timeout": RUN_LIMIT}
    body = await ls.following.ask("cast", order, 2 * RUN_LIMIT)
    failed = [f"rank {one['ranks']}: {one['message']}" for one in body["errors"]] if body else []
    if failed:
        told = types.ShowMessageParams(types.MessageType.Warning, one_line("; ".join(failed)))
        ls.window_show_message(told)
