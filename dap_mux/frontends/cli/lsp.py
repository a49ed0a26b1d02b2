"""`dap-mux lsp`: the language server on standard input and output, for an editor."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from contextlib import AbstractAsyncContextManager, redirect_stdout
from typing import BinaryIO, Final

from dap_mux.client import DapClient
from dap_mux.frontends.cli.execution import load_config
from dap_mux.pure.errors import DapMuxError
from dap_mux.system.session_files import SessionFile

# As in the extra [lsp] of pyproject.toml. They are named here because the extra itself can be
# installed from a clone only, and whoever reads the message may not have one.
PACKAGES: Final = ("pygls>=2", "tree-sitter>=0.23", "tree-sitter-json>=0.24")
MISSING_EXTRA: Final = (
    "the language server needs optional packages ({missing} is missing): {install}"
)


def main(args: Namespace) -> int:
    """Serve until the editor exits; 1 if it does so without `shutdown`."""
    config = load_config(args)
    try:
        from dap_mux.frontends.lsp.features import make_server
        from dap_mux.frontends.lsp.session_follower import EVENTS
    except ModuleNotFoundError as error:
        install = shlex.join([sys.executable, "-m", "pip", "install", *PACKAGES])
        raise DapMuxError(MISSING_EXTRA.format(missing=error.name, install=install)) from error
    from dap_mux.frontends.cli.join import observer

    def join(session: SessionFile) -> AbstractAsyncContextManager[DapClient]:
        return observer(session, config, "dap-mux lsp", events=EVENTS)

    with private_stdout() as out, redirect_stdout(sys.stderr):
        server = make_server(join, args.session)
        server.start_io(stdout=out)
    return server.exit_code


def private_stdout() -> BinaryIO:
    """Return a private copy of standard output for the editor, which pygls closes at the end."""
    sys.stdout.flush()
    return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
