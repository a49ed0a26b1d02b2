"""Variables of functions that ranks are in, as py-spy prints them: the culprit's; where few differ.

In a job whose ranks run the same code, a variable that most ranks agree on and a few do not is near
the cause; a loop's counter says who is behind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from dap_mux.pure.insight.why.evidence import is_library
from dap_mux.pure.insight.why.py_spy import (
    MAX_FRAMES,
    Source,
    SpiedFrame,
    SpiedThread,
    is_main,
    locals_of,
    plain_name,
)
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId, fold

MODULE: Final = "<module>"
"""The names of a whole program are too many."""
MAX_VARIABLES: Final = 12
MAX_VARIABLE_CHARS: Final = 80
MAX_DIFFERENCES: Final = 8
MAX_DIFFERENT_CHARS: Final = 160
"""py-spy cuts a value after 128."""
MAX_VALUES: Final = 4
FEWEST: Final = 3
"""Of two ranks nobody knows which is the odd one."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+>")
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
Values = dict[str, list[RankId]]
"""The ranks that have each value."""


def own_frames(threads: Sequence[SpiedThread], pid: int) -> list[SpiedFrame]:
    """Return the main thread's frames of the program's own code, the innermost first."""
    main = next((each for each in threads if is_main(each, pid)), None)
    frames = main.frames[:MAX_FRAMES] if main is not None else []
    return [frame for frame in frames if not is_library(frame.filename)]


def variables_of(own: Sequence[SpiedFrame]) -> str:
    """Return the variables of the innermost of these frames, "" for none.

    As `load: shard = "shard-2", step = 3`.
    """
    if not own or own[0].name == MODULE:
        return ""
    told = (_shown(*one, MAX_VARIABLE_CHARS) for one in locals_of(own[0]).items())
    shown = list(islice(told, MAX_VARIABLES))
    return f"{plain_name(own[0].name)}: {', '.join(shown)}" if shown else ""


def differences(
    frames: Mapping[RankId, Sequence[SpiedFrame]], source_of: Callable[[str], Source | None]
) -> list[str]:
    """Say which variables few ranks have with another value, the outermost functions first.

    As `in main: step = 4 in ranks 0-5,7, step = 5 in rank 6`. Loops' counters come first; one that
    most ranks have with another value is shown of the rank that is behind. Others are those of
    functions that all ranks are in: where some wait for others, whom they wait for differs.
    """
    found: dict[tuple[str, str], Values] = {}
    counters: set[tuple[str, str]] = set()
    inside: Counter[str] = Counter()
    for rank, of_rank in frames.items():
        # Of a function that calls itself the innermost call counts.
        own = [each for each in of_rank if each.name != MODULE]
        calls = {(each.filename, plain_name(each.name)): each for each in reversed(own)}
        for (path, function), frame in calls.items():
            inside[f"{path}:{function}"] += 1
            source = source_of(path)
            counted = source.counters(frame.line) if source is not None else set()
            for name, text in locals_of(frame).items():
                key = f"{path}:{function}", name
                found.setdefault(key, {}).setdefault(_ADDRESS.sub(">", text), []).append(rank)
                counters.update({key} if name in counted else ())
    ranks = sum(map(bool, frames.values()))
    common = [key for key in found if key in counters or inside[key[0]] == ranks]
    order = sorted(common, key=lambda key: key not in counters)
    told = (_told(key, found[key], is_counter=key in counters) for key in order)
    return list(islice(filter(None, told), MAX_DIFFERENCES))


def _told(key: tuple[str, str], values: Values, *, is_counter: bool) -> str:
    function, name = key[0].rpartition(":")[2], key[1]
    total = sum(map(len, values.values()))
    if len(values) < 2 or total < FEWEST:
        return ""
    groups = sorted(values.items(), key=lambda one: (-len(one[1]), one[1]))
    if len(groups) <= MAX_VALUES and 2 * len(groups[0][1]) > total:
        told = (f"{_shown(name, text, MAX_DIFFERENT_CHARS)} in {_ranks(of)}" for text, of in groups)
        return f"in {function}: {', '.join(told)}"
    if is_counter and all(map(_NUMBER.fullmatch, values)):
        lowest = min(values, key=int)
        return f"in {function}: {name} = {lowest} in {_ranks(values[lowest])}, more in the others"
    return ""


def _shown(name: str, text: str, most: int) -> str:
    return one_line(f"{name} = {text}"[:most])


def _ranks(of: Iterable[RankId]) -> str:
    ids = list(of)
    return f"rank{'s' * (len(ids) != 1)} {fold(ids)}"
