"""What is shown in the text of a program: where ranks stand, and what names are worth there."""

from __future__ import annotations

from typing import Final

from lsprotocol import types

from dap_mux.lsp import text
from dap_mux.lsp.expressions import Page
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.server import Server

LIMIT: Final = 1.0  # s that ranks may take to say a value


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
