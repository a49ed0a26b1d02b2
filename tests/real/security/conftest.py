"""Fixtures for security: a user whose folder has a short name, and that user's secrets."""

from __future__ import annotations

from tests.support.security import certificate, token, user

__all__ = ["certificate", "token", "user"]
