"""The type of message bodies that handlers build or change."""

from __future__ import annotations

from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]
