"""Read what the engine sends to ranks."""

from __future__ import annotations

from functools import cache

from dap_mux.engine.injected_sources import InjectedSources
from dap_mux.injected import source_of


@cache
def injected_sources() -> InjectedSources:
    """Return the source of each module that the engine asks for."""
    return InjectedSources(*map(source_of, InjectedSources.__struct_fields__))
