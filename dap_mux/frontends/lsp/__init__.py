"""The language server, `dap-mux lsp`: shows what ranks do in the source, in any editor.

The server joins the running session as an observer, so it starts, configures and keeps nothing.
Needs the extra `[lsp]`; no other part of the package imports this one.
"""

from __future__ import annotations
