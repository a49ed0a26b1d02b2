"""All kinds of the others in one job, which imports torch once: `everything.py KIND...`."""

from __future__ import annotations

import messages
import replicas
import sharded
from common import run

if __name__ == "__main__":
    run(*replicas.KINDS, *messages.KINDS, *sharded.KINDS)
