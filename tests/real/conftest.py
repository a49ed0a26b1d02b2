"""Fixtures for real ranks: users and their commands, agents, plain programs, terminals."""

from __future__ import annotations

from tests.real.ranks.agents import script, start
from tests.real.ranks.programs import python
from tests.support.processes.commands import user
from tests.support.processes.editor_process import editor
from tests.support.processes.tmux import tmux

__all__ = ["editor", "python", "script", "start", "tmux", "user"]
