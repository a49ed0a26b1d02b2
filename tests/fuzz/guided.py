"""Sessions by Atheris: mutated from what reached new code of the engine, kept in build/fuzz.

An input is a row of frames (`drawn`), and mutations leave out, repeat, mix and change frames. So a
mutated session differs in few steps, and the rest of it still means what it meant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import atheris

with atheris.instrument_imports(include=["dap_mux"]):
    from tests.fuzz.drawn import FRAME, MOST_STEPS, step
    from tests.fuzz.world import Said

FIRST: Final = 50  # sessions to mutate, drawn where no earlier run has left any
FOLDER: Final = Path(__file__).parents[2] / "build" / "fuzz"


def fuzz(attempt: Callable[[list[Said]], None], first: int) -> None:
    """Give `attempt` sessions until it ends the process; what it raises is kept and ends it."""
    corpus = FOLDER / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        _begin(corpus, Random(first))
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-artifact_prefix={FOLDER}{os.sep}",
            f"-seed={first + 1}",  # 0 would be the time of day
            f"-max_len={FRAME * MOST_STEPS}",
            "-len_control=0",
            "-timeout=60",
            "-verbosity=0",
        ],
        lambda data: attempt([step(frame) for frame in _frames(data)]),
        custom_mutator=_mutated,
        custom_crossover=_crossed,
    )
    atheris.Fuzz()


def _begin(corpus: Path, random: Random) -> None:
    for number in range(FIRST):
        size = FRAME * random.randint(MOST_STEPS // 2, MOST_STEPS)
        (corpus / f"drawn-{number}").write_bytes(random.randbytes(size))


def _frames(data: bytes) -> list[bytes]:
    return [data[start : start + FRAME] for start in range(0, len(data), FRAME)]


def _mutated(data: bytes, most: int, seed: int) -> bytes:
    """Leave out a frame, or repeat, move, renew or change one."""
    random = Random(seed)
    frames = _frames(data) or [b""]
    place, other = random.randrange(len(frames)), random.randrange(len(frames) + 1)
    kind = random.randrange(8)
    if kind == 0:
        del frames[place]
    elif kind == 1:
        frames.insert(other, frames[place])
    elif kind == 2:
        frames.insert(min(other, len(frames) - 1), frames.pop(place))
    elif kind == 3:
        frames.insert(other, random.randbytes(FRAME))
    else:
        frames[place] = bytes(atheris.Mutate(frames[place], FRAME)).ljust(FRAME, b"\0")
    return b"".join(frames)[:most]


def _crossed(one: bytes, other: bytes, most: int, seed: int) -> bytes:
    """Begin as the one and go on as the other."""
    random = Random(seed)
    ours, theirs = _frames(one), _frames(other)
    joined = ours[: random.randint(0, len(ours))] + theirs[random.randint(0, len(theirs)) :]
    return b"".join(joined)[:most]
