"""Read what the engine sends to ranks."""

from __future__ import annotations

from functools import cache

from dap_mux.engine.remote.injected_sources import InjectedSources
from dap_mux.injected import folders


@cache
def injected_sources() -> InjectedSources:
    """Return the sources of all modules."""
    return InjectedSources(folders())
