"""The text of code that came to a rank by value, from a client that has the file.

The rank compares it with the code that it has, and shows it in tracebacks and to clients that lack
the file. Where it is another text, breakpoints in it may be at other lines: that is told.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.inputs import LocalText
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import ReadLocal
from dap_mux.engine.remote.injected_sources import call
from dap_mux.engine.source_files.diagnosis import Files, local_path
from dap_mux.engine.source_files.path_mappings import paths_of
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.rank_messages import Evaluated
from dap_mux.rank_sets.debuggees import DebuggeeId

DIFFERS: Final = "differs"  # as in dap_mux/injected/attach/missing_files.py


class CodeTexts:
    """Brings texts to the ranks that have their code and not the file."""

    def __init__(self, core: SessionState, files: Files) -> None:
        self._core = core
        self._files = files
        files.code_found.add(self.found)
        self._reading: dict[int, str] = {}
        self._waiting: dict[str, set[DebuggeeId]] = {}  # the ranks that a text is read for

    def found(self, rank: Rank, path: str) -> None:
        """A rank has code of a file that it lacks."""
        if path in self._waiting:
            self._waiting[path].add(rank.id)
            return
        client = next(filter(self._files.are_here, self._core.controllers()), None)
        if client is not None:
            self._waiting[path] = {rank.id}
            self._read(client, path)

    def _read(self, client: Client, path: str) -> None:
        token = self._core.number()
        self._reading[token] = path
        self._core.out.append(ReadLocal(token, client.id, local_path(client, path)))

    def read(self, event: LocalText) -> None:
        """Take a text from the shell."""
        path = self._reading.pop(event.token, None)
        if path is None:
            return
        for id in sorted(self._waiting.pop(path, ())):
            rank = self._core.ranks.get(id)
            if event.text and rank is not None and rank.phase.live:
                self._bring(rank, path, event.text)

    def _bring(self, rank: Rank, path: str, text: str) -> None:
        remote = paths_of(self._core, rank).to_remote(path) or path
        source = self._core.injected["missing_files"]
        arguments = {
            "expression": call(source, "bring", repr(remote), repr(text)),
            "context": "watch",
        }

        def brought(said: Evaluated | None, _: Reply) -> None:
            if said is not None and said.result.strip("'") == DIFFERS:
                self._files.has_other_code(rank, path)

        to_ranks.ask_for(self._core, rank, "evaluate", arguments, Evaluated, brought)
