"""A regular expression backtracks without end on one rank's text, and holds the GIL.

https://github.com/OpenNyAI/Opennyai/issues/16: a nested quantifier met a long line of capitals in a
large batch of documents; re holds the GIL, so that nothing in the process can interrupt it.
"""

from __future__ import annotations

import re

import torch
import torch.distributed as dist

ACRONYM = re.compile(r"([A-Z]+[a-z]?\.*\s*,*)*")
DOCUMENTS = {2: "THE CODE OF CRIMINAL PROCEDURE NINETEEN SEVENTY THREE;"}


def is_acronym(text: str) -> bool:
    return ACRONYM.fullmatch(text) is not None  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    found = is_acronym(DOCUMENTS.get(dist.get_rank(), "CCP"))
    dist.all_reduce(torch.tensor([int(found)]))


main()
