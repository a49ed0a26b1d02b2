"""Fixtures of the tests of planted bugs."""

from __future__ import annotations

from tests.support.processes.commands import user

__all__ = ["user"]
