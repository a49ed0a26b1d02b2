"""Find the path mapping that leads from a client's file to one that a rank has loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Fit: TypeAlias = tuple[str, str]
Near: TypeAlias = tuple[str, str, bool]


def fitting(local: str, digest: str, near: Iterable[Near], root: str) -> tuple[Fit, bool] | None:
    """Return the roots that lead from a client's path to one of `near`, and whether `root` stays.

    `near`: files of that name in a rank. One with the expected `digest` beats the longest common
    end; a common name alone counts only if the rank was started with that file. `root`: the local
    root that the path is mapped by now; a shorter one would never apply.
    """
    parts, separator = _parts(local)
    likely = [each for each in near if _is_likely(parts, digest, each)]
    if not likely:
        return None
    theirs, slash = _parts(
        max(likely, key=lambda each: (each[1] == digest, _tail(parts, each[0])))[0]
    )
    longest = len(parts) - (len(_parts(root)[0]) if root else 2)
    count = min(_tail(parts, slash.join(theirs)), longest)
    if count < 1:
        return None
    here, there = separator.join(parts[:-count]), slash.join(theirs[:-count])
    return (here, there or slash), bool(root) and here == root.rstrip("/\\")


def _is_likely(parts: list[str], expected: str, near: Near) -> bool:
    path, digest, started = near
    tail = _tail(parts, path)
    return tail > 0 and (started or tail > 1 or digest == expected != "")


def _parts(path: str) -> tuple[list[str], str]:
    separator = "\\" if "\\" in path else "/"
    return path.rstrip(separator).split(separator), separator


def _tail(parts: list[str], path: str) -> int:
    """Return how many last parts two paths share."""
    pairs = zip(reversed(parts), reversed(_parts(path)[0]), strict=False)
    same = [mine == theirs for mine, theirs in pairs] + [False]
    return same.index(False)
