"""The expression that asks a rank what it does: `injected.evidence`."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from typing import Final
from zlib import compress, crc32

import msgspec

from dap_mux.engine.injected_sources import FILE_NAME, InjectedSources

# The names of the frame where it is evaluated may be others than Python's own.
PYTHON: Final = "__import__('builtins')"


@lru_cache(maxsize=8)
def ask(injected: InjectedSources) -> str:
    """Return an expression for `evidence.evidence`: JSON of a `Sample`.

    The rank keeps what is compiled on its debugger, so that the next sample need not have it
    compiled again; another version brings its own.
    """
    sources = msgspec.json.encode(_sources(injected))
    packed = b64encode(compress(sources, 9)).decode()
    unpacked = f"__import__('zlib').decompress(__import__('base64').b64decode({packed!r}))"
    kept_as = f"dap_mux_evidence_{crc32(sources):08x}"
    return (
        "(lambda python, kept: (lambda own: own['evidence'](own['sources']))("
        f"kept.get({kept_as!r}) or (lambda own: python.exec(python.compile("
        f"own['sources']['evidence'], {FILE_NAME!r}, 'exec'), own)"
        f" or kept.setdefault({kept_as!r}, own))"
        f"({{'sources': __import__('json').loads({unpacked})}})))"
        f"({PYTHON}, {PYTHON}.vars(__import__('pydevd').get_global_debugger()))"
    )


def _sources(injected: InjectedSources) -> dict[str, str]:
    return {
        "evidence": injected.evidence,
        "flight_recorder": injected.flight_recorder,
        "held_locks": injected.held_locks,
        "progress": injected.progress,
        "source_code": injected.source_code,
        "stacks": injected.stacks,
        "static_values": injected.static_values,
        "thread_states": injected.thread_states,
        "waiting_calls": injected.waiting_calls,
    }
