"""The engine's outputs as tests look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dap_mux.engine.outputs import Output, ToRank, ToRanks


def singly(out: Iterable[Output]) -> Iterator[Output]:
    """Yield them, with a message to many ranks as one to each of them."""
    for output in out:
        if isinstance(output, ToRanks):
            yield from (ToRank(link, output.body) for link in output.links)
        else:
            yield output
