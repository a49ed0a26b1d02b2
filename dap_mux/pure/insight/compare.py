"""Compares the values of many ranks: groups equal ones, describes numbers, finds outliers."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from dap_mux.pure.grouping import grouped
from dap_mux.pure.protocol.types import EXACT, Tolerance
from dap_mux.pure.rank_sets import RankId

# Addresses in the `repr` of objects, which differ in every process and say nothing of a value.
#
# `<Foo object at 0x7f12a3>` in one rank and `<Foo object at 0x7f98c4>` in another count as equal.

# Only in what `repr` puts in angle brackets: a number elsewhere is a value. Names inside may have
# brackets of their own: <function train.<locals>.<lambda> at 0x7f12a3>. Bounded, because a rank may
# send any text, and each bracket in it is a place to start.
_ADDRESS: Final = re.compile(r"(<(?:[^<>'\"]|<\w+>){1,400}? at )0x[0-9a-fA-F]+")
MASKED: Final = "0x…"


def without_addresses(text: str) -> str:
    """Return a `repr` with its addresses masked; texts to compare, and to show for several."""
    return _ADDRESS.sub(rf"\g<1>{MASKED}", text) if " at 0x" in text else text


def common_text(texts: Iterable[str]) -> str:
    """Return the one text to show for texts that are equal but for addresses."""
    first, *others = dict.fromkeys(texts)
    return without_addresses(first) if others else first


_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|nan|inf)",
    re.IGNORECASE,
)
_NORM: Final = re.compile(
    r"\w{1,99}\[[\d, ]{0,99}\] [^·]{1,99} · norm (\S{1,40}) · nan [^·]+ · inf .+"
)
"""In the summary of an array (`injected/tensor_summary.py`)."""
_MAX_NUMBER_CHARS: Final = 400  # longer texts are not read as numbers
_BINS: Final = 10
_ENOUGH_NUMBERS: Final = 8  # for a histogram: fewer are read faster one by one
_MAX_DEVIATIONS: Final = 3.5
_MAD_TO_STD: Final = 1.4826
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


class Group(NamedTuple):
    """Ranks with equal values; with a tolerance, `value` is the commonest of them.

    `shown_of`: the lowest rank that has this value.
    """

    value: str
    ranks: tuple[RankId, ...]
    shown_of: RankId
    outlier: bool = False


class Histogram(Struct, frozen=True):
    """`counts[i]` numbers lie from `edges[i]` to `edges[i + 1]`; the last edge is included."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


class Statistics(Struct, frozen=True):
    """Statistics of the numbers. All but the counts are of the finite ones, None if there are none.

    `std` is the standard deviation of just these numbers (numpy's default, `ddof=0`). There is no
    `histogram` of fewer than eight finite numbers.
    """

    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    histogram: Histogram | None


class Comparison(NamedTuple):
    """`groups`: most ranks first, outliers last. `statistics` is None if most are not numbers."""

    groups: tuple[Group, ...]
    statistics: Statistics | None
    outliers: frozenset[RankId]


def compare(values: Mapping[RankId, str], limit: Tolerance = EXACT) -> Comparison:
    """Compare the `repr` texts of ranks' values."""
    same = {rank: without_addresses(text) for rank, text in values.items()}
    numbers = {
        rank: found for rank, text in values.items() if (found := number_of(text)) is not None
    }
    outliers = _outliers(same, numbers, limit)
    if not numbers and not outliers:
        outliers = _outliers(same, _norms(values), limit)
    groups: list[Group] = []
    for far in (False, True):
        chosen = {rank: text for rank, text in same.items() if (rank in outliers) is far}
        for text, ranks in _grouped(chosen, numbers, limit):
            having = [rank for rank in ranks if same[rank] == text]
            shown = common_text(values[rank] for rank in having)
            groups.append(Group(shown, tuple(ranks), having[0], far))
    most = 2 * len(numbers) > len(values)
    return Comparison(tuple(groups), describe(numbers.values()) if most else None, outliers)


def number_of(text: str) -> float | None:
    """Return the number in a text, None for anything else; `True` is not a number."""
    if len(text) > _MAX_NUMBER_CHARS or not _NUMBER.fullmatch(text):
        return None
    return float(text)


def _norms(values: Mapping[RankId, str]) -> dict[RankId, float]:
    """Return the norms of arrays; each rank may have data of its own."""
    found = ((rank, _NORM.fullmatch(text)) for rank, text in values.items())
    norms = {rank: number_of(norm[1]) for rank, norm in found if norm}
    return {rank: number for rank, number in norms.items() if number is not None}


# Groups


def _grouped(
    values: Mapping[RankId, str], numbers: Mapping[RankId, float], limit: Tolerance
) -> list[tuple[str, list[RankId]]]:
    same = grouped((values[rank], rank) for rank in sorted(values))
    ordered = sorted(same.items(), key=lambda item: -len(item[1]))  # stable: lowest rank first
    return _joined(ordered, numbers, limit) if limit != EXACT else ordered


def _joined(
    groups: list[tuple[str, list[RankId]]], numbers: Mapping[RankId, float], limit: Tolerance
) -> list[tuple[str, list[RankId]]]:
    """Add each number to the group of the commonest value that it equals."""
    joined: list[tuple[str, list[RankId]]] = []
    for value, ranks in groups:
        number = numbers.get(ranks[0], math.nan)
        close = (members for _, members in joined if _same(number, numbers, members[0], limit))
        members = next(close, None)
        if members is None:
            joined.append((value, list(ranks)))
        else:
            members += ranks
    return sorted(
        ((value, sorted(ranks)) for value, ranks in joined),
        key=lambda item: (-len(item[1]), item[1]),
    )


def _same(number: float, numbers: Mapping[RankId, float], other: RankId, limit: Tolerance) -> bool:
    known = numbers.get(other, math.nan)
    return math.isfinite(number) and math.isfinite(known) and limit.same(number, known)


# Outliers


# Outliers are always fewer than half of the ranks, and there are none if that is not clear:
#
# - ranks without a number while most have one, or the other way round;
# - ranks with nan or inf while most numbers are finite, or the other way round;
# - of finite numbers, those further from the median than 3.5 times the typical distance from it
#   (1.4826 · MAD, the median absolute deviation: Iglewicz and Hoaglin, 1993) and beyond the
#   tolerance; if more than half of the numbers are equal, these are all others;
# - of other values, those that differ from the value of more than half.
def _outliers(
    values: Mapping[RankId, str], numbers: Mapping[RankId, float], limit: Tolerance
) -> frozenset[RankId]:
    """Find the coarsest difference first; finer ones count while most ranks are not outliers."""
    found: frozenset[RankId] = frozenset()
    for odd in _differences(values, numbers, limit):
        if 2 * len(found | odd) >= len(values):
            break
        found |= odd
    return found


def _differences(
    values: Mapping[RankId, str], numbers: Mapping[RankId, float], limit: Tolerance
) -> Iterator[frozenset[RankId]]:
    """Yield the minority by being a number, by being finite, by distance from the others."""
    others = {rank: text for rank, text in values.items() if rank not in numbers}
    if 2 * len(numbers) <= len(values):
        yield frozenset(numbers)
        yield _minority(others)
        return
    yield frozenset(others)
    finite = {rank: number for rank, number in numbers.items() if math.isfinite(number)}
    strange = {rank: str(number) for rank, number in numbers.items() if rank not in finite}
    if len(strange) < len(finite):
        yield frozenset(strange)
        yield _far(finite, limit)
    elif len(finite) < len(strange):
        yield frozenset(finite)
        yield _minority(strange)


def _far(numbers: Mapping[RankId, float], limit: Tolerance) -> frozenset[RankId]:
    from statistics import median  # noqa: PLC0415  (5 ms, when it is first used)

    # Each is halved, so that the difference of two cannot overflow.
    centre = median([number / 2 for number in numbers.values()])
    distance = {rank: abs(number / 2 - centre) for rank, number in numbers.items()}
    usual = _MAD_TO_STD * median(distance.values())
    return frozenset(
        rank
        for rank, number in numbers.items()
        if distance[rank] > _MAX_DEVIATIONS * usual and not limit.same(number, 2 * centre)
    )


def _minority(values: Mapping[RankId, str]) -> frozenset[RankId]:
    """Return the ranks whose value differs from that of more than half."""
    for common, times in Counter(values.values()).most_common(1):
        if 2 * times > len(values):
            return frozenset(rank for rank, value in values.items() if value != common)
    return frozenset()


# Numbers


def describe(numbers: Iterable[float]) -> Statistics:
    """Return the statistics of numbers."""
    known = list(numbers)
    finite = [number for number in known if math.isfinite(number)]
    nan = sum(map(math.isnan, known))
    inf = len(known) - len(finite) - nan
    if not finite:
        return Statistics(None, None, None, None, nan, inf, None)
    mean = math.fsum(number / len(finite) for number in finite)
    spread = max(abs(number - mean) for number in finite)
    std = _std(finite, mean, spread)
    bars = histogram(finite) if len(finite) >= _ENOUGH_NUMBERS else None
    return Statistics(min(finite), max(finite), mean, std, nan, inf, bars)


def _std(numbers: Sequence[float], mean: float, spread: float) -> float | None:
    if not math.isfinite(spread):
        return None  # the spread overflows a float
    if spread == 0:
        return 0.0
    return spread * math.sqrt(
        math.fsum(((number - mean) / spread) ** 2 for number in numbers) / len(numbers)
    )


def histogram(numbers: Sequence[float], bins: int = _BINS) -> Histogram | None:
    """Return a histogram of finite numbers, with one bin if all are equal."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return Histogram((low, high), (len(numbers),))
    if not math.isfinite(high - low):
        return None
    width = high - low
    counts = [0] * bins
    for number in numbers:
        counts[min(int((number - low) / width * bins), bins - 1)] += 1
    edges = (*(low + width * (index / bins) for index in range(bins)), high)
    return Histogram(edges, tuple(counts))


def sparkline(counts: Sequence[int]) -> str:
    """Return one character for each count, for a terminal: `▁ █▃`; a blank for none."""
    most = max(counts, default=0)
    steps = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round(count / most * steps)] if count else " " for count in counts)


_NO_NUMBER: Final = "×"


def spread(numbers: Sequence[float | None], bars: int = 16) -> str:
    """Return one bar for each number, from the lowest to the highest: `▁▁▁█▁`; `×` for none.

    Of more numbers than `bars`, each bar is that of several the one furthest from the median.
    """
    finite = sorted(one for one in numbers if one is not None and math.isfinite(one))
    if not finite:
        return ""
    low, high, middle = finite[0], finite[-1], finite[len(finite) // 2]

    def distance(one: float | None) -> float:
        return abs(one - middle) if one is not None and math.isfinite(one) else math.inf

    def bar(one: float | None) -> str:
        if one is None or not math.isfinite(one):
            return _NO_NUMBER
        share = (one / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.0
        return _BLOCKS[round(share * (len(_BLOCKS) - 1))]

    size = len(numbers)
    ends = [size * index // bars for index in range(bars + 1)] if size > bars else range(size + 1)
    parts = [numbers[start:end] for start, end in itertools.pairwise(ends)]
    return "".join(bar(max(part, key=distance)) for part in parts)


# Answers of many ranks to one command, folded: `{0-3,5-7}: 2.31 | {4}: nan`.

RankLabel: TypeAlias = Callable[[Iterable[RankId]], str]


def folded(
    values: Mapping[RankId, tuple[str, str]],
    errors: Mapping[RankId, str],
    label: RankLabel,
    reference: Callable[[RankId], int],
) -> dict[str, Any]:
    """Return `results`, `errors` and `outliers`.

    `values` are (value, type). Most ranks come first, among equals the lowest; outliers (those of
    `compare`) last. `reference` is
    asked once for each distinct value, of its lowest rank.
    """
    groups = _by_answer(values)
    odd: frozenset[RankId] = frozenset()
    if len(groups) > 1:
        odd = compare({rank: value for rank, (value, _) in values.items()}).outliers
        groups.sort(key=lambda group: group[2][0] in odd)
    results = [
        {
            "ranks": label(ranks),
            "value": value,
            "type": type,
            "variablesReference": reference(ranks[0]),
            "outlier": ranks[0] in odd,
        }
        for value, type, ranks in groups
    ]
    failed = by_message(errors, label)
    return {"results": results, "errors": failed, "outliers": label(sorted(odd))}


def by_message(texts: Mapping[RankId, str], label: RankLabel) -> list[dict[str, Any]]:
    """Return each distinct text with the names of its ranks, as `most_first` has them."""
    return [{"ranks": label(ranks), "message": text} for text, ranks in most_first(texts)]


def most_first(texts: Mapping[RankId, str]) -> list[tuple[str, list[RankId]]]:
    """Return each distinct text with its ranks, sorted.

    Addresses of objects do not count, and are masked where they differ.
    """
    said = {rank: (text, "") for rank, text in texts.items()}
    return [(text, ranks) for text, _, ranks in _by_answer(said)]


def _by_answer(said: Mapping[RankId, tuple[str, str]]) -> list[tuple[str, str, list[RankId]]]:
    """Return each distinct text and type with its ranks, as `most_first` has them.

    Most ranks say the same: a text is looked at once, not for each of a thousand.
    """
    same = grouped((pair, rank) for rank, pair in said.items())
    alike = grouped(
        ((without_addresses(text), type), (text, ranks)) for (text, type), ranks in same.items()
    )
    groups = [
        (
            members[0][0] if len(members) == 1 else masked,
            type,
            sorted(chain.from_iterable(ranks for _, ranks in members)),
        )
        for (masked, type), members in alike.items()
    ]
    return sorted(groups, key=lambda group: (-len(group[2]), group[2][0]))
