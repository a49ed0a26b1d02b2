"""`dap-mux lsp`: the language server on standard input and output, for an editor."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from functools import partial
from typing import BinaryIO, Final

from dap_mux.frontends.cli.execution import load_config, needing

# As in the extra [lsp] of pyproject.toml. They are named here because the extra itself can be
# installed from a clone only, and whoever reads the message may not have one.
PACKAGES: Final = ("pygls>=2", "tree-sitter>=0.23", "tree-sitter-json>=0.24")


def main(args: Namespace) -> int:
    """Serve until the editor exits; 1 if it does so without `shutdown`."""
    config = load_config(args)
    with needing("the language server needs optional packages", PACKAGES):
        from dap_mux.frontends.lsp.features import make_server
        from dap_mux.frontends.lsp.session_follower import EVENTS
    from dap_mux.frontends.cli.join import observer

    join = partial(observer, config=config, name="dap-mux lsp", events=EVENTS)
    with private_stdout() as out, redirect_stdout(sys.stderr):
        server = make_server(join, args.session)
        server.start_io(stdout=out)
    return server.exit_code


def private_stdout() -> BinaryIO:
    """Return a private copy of standard output for the editor, which pygls closes at the end."""
    sys.stdout.flush()
    return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
