"""Which combinations of parameters run in CI, and which in `make test-rest` alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

import pytest


def rest(*values: Any) -> Any:
    """A case that tries together what others try one by one."""
    return pytest.param(*values, marks=pytest.mark.rest)


def each_once(*dimensions: Sequence[Any]) -> list[Any]:
    """Return all combinations; those that are not needed to have each value once are `rest`."""
    most = max(map(len, dimensions))
    chosen = {tuple(each[at % len(each)] for each in dimensions) for at in range(most)}
    return those(chosen, *dimensions)


def those(chosen: Collection[tuple[Any, ...]], *dimensions: Sequence[Any]) -> list[Any]:
    """Return all combinations; all but these are `rest`."""
    return [each if each in chosen else rest(*each) for each in product(*dimensions)]
