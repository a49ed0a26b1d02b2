"""POSIX and Windows paths as text, on any machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final

WINDOWS: Final = r"[A-Za-z]:[\\/]|\\\\"


def below(root: str, path: str) -> tuple[str, ...] | None:
    """Return the parts of `path` below `root`, None if it is not below."""
    if is_windows(root) != is_windows(path):
        return None
    kind = pure(root)
    base, parts = kind(root).parts, kind(path).parts
    if kind(*parts[: len(base)]) != kind(root) or len(parts) < len(base):
        return None
    return parts[len(base) :]


def join(root: str, parts: Iterable[str]) -> str:
    return str(pure(root)(root, *parts))


def slashed(root: str) -> str:
    slash = "\\" if is_windows(root) else "/"
    return root if root.endswith(("/", "\\")) else root + slash


def is_windows(path: str) -> bool:
    """Whether it is a Windows path: `C:\\x`, `c:/x`, or a share."""
    return re.match(WINDOWS, path) is not None


def pure(path: str) -> type[PurePath]:
    return PureWindowsPath if is_windows(path) else PurePosixPath


def is_absolute(path: str) -> bool:
    return path.startswith("/") or is_windows(path)
