"""torch's flight recorder is switched on in jobs that we start, for `why` to ask."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

SIZE: Final = "TORCH_FR_BUFFER_SIZE"
OLD_SIZE: Final = "TORCH_NCCL_TRACE_BUFFER_SIZE"
"""Its name up to torch 2.7; newer ones warn where it is set."""
ENTRIES: Final = "2000"


def recorder_variables(environ: Container[str]) -> dict[str, str]:
    """Return the variables to add to those of a job; none where the user has set them."""
    return {} if SIZE in environ or OLD_SIZE in environ else {SIZE: ENTRIES}
