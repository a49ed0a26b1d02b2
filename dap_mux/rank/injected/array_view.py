"""A tensor or array as a small grid of cells: what leaves the rank is the grid, never the data."""

from __future__ import annotations

import base64
import json
import math
import sys
import time
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Sequence

WITHIN = 1.5  # s; cells that are not reduced by then are left out
DEVICE_WITHIN = 2.0  # s until a device has finished, of which it may be busy for 0.2
MAX_CELLS = 256  # in each direction
BLOCK = 1 << 20  # elements that are looked at in one go: what is allocated is a few times this
SAMPLE = 1 << 20  # elements for the histogram
BINS = 40
USUAL = (0.02, 0.98)  # what lies farther from these shares than they from each other is far off
MAX_CHARS = 200
NUMBERS = "biufcV"  # kinds of numpy's types; V: bfloat16 and its like
# Modules of torch that know the place of a DTensor's local part, of 2.5 and later, and of before.
PLACES = ("torch.distributed.tensor._utils", "torch.distributed._tensor._utils")

_kept: dict[str, Any] = {}


def view(sent: dict[str, Any], value: Any, asked: dict[str, Any]) -> str:
    """Return JSON of the value, or of the `problem` with it.

    `asked`: `rows` and `columns`, the dimensions that are laid out, None for the last ones; `line`:
    all rows are one; `at`, an index for each dimension, -1 for all of it; `width`, the most columns
    of cells; `cells`: whether they are wanted, or only the shape. `sent`: the modules, by name.
    """
    try:
        return json.dumps(told_of(sent, value, asked))
    except Exception as error:  # noqa: BLE001  (the value is the program's)
        return json.dumps({"problem": f"{type(error).__name__}: {error}"[:MAX_CHARS]})


def told_of(sent: dict[str, Any], value: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of the value, with its `part` of the cells if they are wanted."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    about: dict[str, Any] = {"name": type(value).__name__[:MAX_CHARS]}
    lib: Any = numpy
    given: Any = value
    if isinstance(value, getattr(torch, "Tensor", ())):
        lib, data = torch, of_torch(value, torch, about)
        if numpy and data.device.type == "cpu":
            with suppress(Exception):  # bfloat16, which numpy lacks; numpy starts no threads
                lib, data = numpy, data.numpy()
    elif isinstance(value, getattr(numpy, "ndarray", ())):
        data = lib.asarray(value)
        if data.dtype.kind not in NUMBERS:
            raise TypeError(f"an array of {data.dtype} has no numbers")
    else:
        raise TypeError(f"{about['name']} is neither a tensor nor an array")
    about.setdefault("shape", list(map(int, given.shape)))
    about["dtype"] = str(given.dtype).split(".")[-1]
    about["local"] = list(map(int, data.shape))
    about.setdefault("offset", [0] * len(about["shape"]))
    if asked["cells"]:
        if lib is torch and data.device.type != "cpu":
            about["part"] = on_device(sent, data, torch, lambda: part_of(lib, data, about, asked))
        else:
            about["part"] = part_of(lib, data, about, asked)
    return about


def of_torch(value: Any, torch: Any, about: dict[str, Any]) -> Any:
    """Return what this rank has of a tensor, and write down its place. No collective is begun."""
    about["device"] = str(value.device)
    with torch.no_grad():
        data = value.detach()
        if hasattr(data, "to_local"):
            about["placements"] = ", ".join(map(str, value.placements))[:MAX_CHARS]
            about["shape"] = list(map(int, value.shape))
            about["offset"] = offset_of(value)
            data = data.to_local()
    if type(data).__name__ == "AsyncCollectiveTensor":
        raise ValueError("the collective that makes it has not ended")
    if data.layout is not torch.strided or data.is_quantized or data.device.type == "meta":
        raise TypeError(f"a tensor like this has no cells: {data.layout}, {data.device.type}")
    return data


def offset_of(value: Any) -> list[int]:
    """Return where the local part of a DTensor begins, by its mesh and placements."""
    for name in PLACES:
        work = getattr(sys.modules.get(name), "compute_local_shape_and_global_offset", None)
        if work is not None:
            return list(map(int, work(value.shape, value.device_mesh, value.placements)[1]))
    raise ValueError("this torch does not say where its local part lies")


def on_device(sent: dict[str, Any], data: Any, torch: Any, work: Callable[[], Any]) -> Any:
    """Do `work` on the tensor's device; a device that hangs keeps a thread of ours alone."""
    if not _kept:
        exec(sent["tensor_summary"], _kept)  # noqa: S102
        _kept.update(STATISTICS_WITHIN=DEVICE_WITHIN)  # this copy of the module is ours alone
    module: Any = getattr(torch, data.device.type, None)
    stream = module.current_stream(data.device) if hasattr(module, "current_stream") else None
    if not _kept["is_there"](stream):
        raise ValueError(f"{data.device} is busy: it is not computed yet")

    def run(found: dict[str, Any]) -> None:
        try:
            if stream is None:
                found["part"] = work()
            else:
                with module.stream(stream):
                    found["part"] = work()
        except Exception as error:  # noqa: BLE001  (the device's own: no memory, say)
            found["problem"] = f"{type(error).__name__}: {error}"

    found: dict[str, Any] = {}
    _kept["in_time"](str(data.device), found, run)
    if "part" not in found:
        raise ValueError(found.get("problem") or found.get("pending") or "it was not computed")
    return found["part"]


def part_of(lib: Any, data: Any, about: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of what the rank has, and where they lie in the whole."""
    shape, offset = about["shape"] or [1], about["offset"] or [0]
    if not about["shape"]:
        data = data.reshape(1)
    rows, columns = asked["rows"], asked["columns"]
    last = len(shape) - 1
    columns = last if columns is None else columns
    if rows is None and last > 0 and not asked["line"]:
        rows = last - 1 if columns == last else last
    for axis in (rows, columns):
        if axis is not None and not 0 <= axis <= last:
            raise IndexError(f"it has no dimension {axis}: its shape is {shape}")
    if rows == columns:
        raise IndexError("rows and columns are the same dimension")
    table = laid_out(lib, data, (rows, columns), asked["at"], offset)
    if 0 in table.shape:
        raise ValueError("it has no elements")
    high = 1 if rows is None else share(MAX_CELLS, table.shape[0], shape[rows])
    wide = share(min(MAX_CELLS, asked["width"]), table.shape[-1], shape[columns])
    if lib.__name__ == "torch":
        with lib.no_grad():
            found = Grid(lib, table, high, wide).told()
    else:
        with lib.errstate(all="ignore"):
            found = Grid(lib, table, high, wide).told()
    place = {"row": 0 if rows is None else offset[rows], "column": offset[columns]}
    size = {"height": 1 if rows is None else int(table.shape[0]), "width": int(table.shape[-1])}
    return {**place, **size, **found}


def share(cells: int, part: int, whole: int) -> int:
    """Return how many of the cells of the whole are a part's, one at least."""
    return max(1, min(int(part), math.ceil(cells * int(part) / max(1, whole))))


def laid_out(
    lib: Any, data: Any, axes: Sequence[int | None], at: Sequence[int], offset: Sequence[int]
) -> Any:
    """Return the data, not copied, as `[rows, ..., columns]`; what is between is reduced."""
    rows, columns = axes
    index: list[Any] = []
    for axis in range(len(data.shape)):
        wanted = at[axis] if axis < len(at) else (-1 if rows is None else 0)
        if axis in axes or wanted < 0:
            index.append(slice(None))
        elif not 0 <= wanted - offset[axis] < data.shape[axis]:
            raise IndexError(f"this rank has no index {wanted} of dimension {axis}")
        else:
            index.append(wanted - offset[axis])
    kept = [axis for axis, one in enumerate(index) if isinstance(one, slice)]
    inner = [axis for axis in kept if axis not in axes]
    inner.sort(key=lambda axis: -int(data.shape[axis]))  # of a rank's line the longest is in blocks
    order = [kept.index(axis) for axis in (rows, *inner, columns) if axis is not None]
    table = getattr(lib, "permute", lib.transpose)(data[tuple(index)], order)
    return table if len(order) > 1 else table[None]


class Grid:
    """Rows and columns of cells, each of equally many elements but for the last ones."""

    def __init__(self, lib: Any, table: Any, high: int, wide: int) -> None:
        self.lib, self.table = lib, table
        height, width = (int(table.shape[axis]) for axis in (0, -1))
        self.tall, self.wide = -(-height // high), -(-width // wide)
        self.size = -(-height // self.tall), -(-width // self.wide)
        self.between = math.prod(map(int, table.shape[1:-1]))
        self.floats, like = floats_of(lib, table)
        self.best = lib.full(self.size, -math.inf, **like)
        self.total, self.nans, self.seen = (lib.zeros(self.size, **like) for _ in range(3))
        self.spans = lib.full(self.size[1:], self.wide, **like)
        self.spans[-1] = width - self.wide * (self.size[1] - 1)
        self.low, self.high, self.nan, self.inf, self.count = math.inf, -math.inf, 0, 0, 0

    def blocks(self) -> Any:
        """Yield blocks: first row of cells, rows of cells, first and last row and column in it.

        A block is part of one row of cells, or several whole ones: on a busy machine torch took
        five times as long for 256 small blocks as for 16 of a million elements.
        """
        height, width = (int(self.table.shape[axis]) for axis in (0, -1))
        fits = max(1, BLOCK // self.between)
        across = width if width <= fits else max(1, fits // self.wide) * self.wide
        down = max(1, fits // across)
        top = 0
        while top < height:
            row, end = top // self.tall, min(height, (top // self.tall + 1) * self.tall)
            rows = min(max(1, down // self.tall), max(1, (height - top) // self.tall))
            bottom = top + rows * self.tall if rows > 1 else min(end, top + down)
            for left in range(0, width, across):
                yield row, rows, slice(top, bottom), slice(left, min(width, left + across))
            top = bottom

    def look(self, row: int, rows: int, down: slice, across: slice) -> None:
        """Count a block in: a block with NaN or infinite elements costs three times as much."""
        lib = self.lib
        block = self.table[down, ..., across]
        block = self.floats(block.reshape((rows, -1, *block.shape[1:])))
        axes = tuple(range(1, len(block.shape) - 1))
        best, least, total = (work(block, axis=axes) for work in (lib.amax, lib.amin, lib.sum))
        low, high = float(least.min()), float(best.max())
        first = across.start // self.wide
        cells = (
            slice(row, row + rows),
            slice(first, first - (across.start - across.stop) // self.wide),
        )
        size = math.prod(map(int, block.shape))
        if not bool(lib.isfinite(total).all()):
            bad, finite = lib.isnan(block), lib.isfinite(block)
            best = lib.amax(lib.where(bad, -math.inf, block), axis=axes)
            total = lib.sum(lib.where(bad, 0.0, block), axis=axes)
            low = float(lib.where(finite, block, math.inf).min())
            high = float(lib.where(finite, block, -math.inf).max())
            counts = lib.sum(bad, axis=axes)
            nan = int(counts.sum())
            self.nan += nan
            self.inf += size - int(finite.sum()) - nan
            self.nans[cells] += self.folded(counts, lib.sum)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.best[cells] = lib.maximum(self.best[cells], self.folded(best, lib.amax))
        self.total[cells] += self.folded(total, lib.sum)
        self.seen[cells] += self.spans[cells[1]] * (size // rows // int(block.shape[-1]))
        self.count += size

    def folded(self, lines: Any, work: Any) -> Any:
        """Return a number for each cell of lines of elements."""
        rows, length = lines.shape
        whole = length // self.wide * self.wide
        parts = [work(lines[:, :whole].reshape(rows, -1, self.wide), axis=2)] if whole else []
        parts += [work(lines[:, whole:].reshape(rows, 1, -1), axis=2)] if whole < length else []
        return (getattr(self.lib, "cat", None) or self.lib.concatenate)(parts, axis=1)

    def told(self) -> dict[str, Any]:
        """Look at all blocks, for so long, and return the cells as text, 32 bits a number."""
        until = time.monotonic() + WITHIN
        complete = True
        for block in self.blocks():
            if time.monotonic() > until:
                complete = False
                break
            self.look(*block)
        lib, known = self.lib, self.seen - self.nans
        best = lib.where(known > 0, self.best, math.nan)
        single = self.tall * self.wide * self.between == 1
        mean = float(self.total.sum()) / max(1, self.count - self.nan)
        finite = self.low <= self.high
        histogram: list[int] = []
        ends: list[float] = []
        with suppress(Exception):  # torch's may be refused: `use_deterministic_algorithms`
            histogram, ends = self.histogram() if finite else ([], [])
        return {
            "grid": list(self.size),
            "mean": packed(self.total / known),
            "max": "" if single else packed(best),
            "nan": packed(self.nans) if self.nan else "",
            "statistics": {
                "min": self.low if finite else None,
                "max": self.high if finite else None,
                "mean": mean if math.isfinite(mean) and finite else None,
                "nan": self.nan,
                "inf": self.inf,
                "count": self.count,
            },
            "histogram": histogram,
            "ends": ends,
            "complete": complete,
        }

    def histogram(self) -> tuple[list[int], list[float]]:
        """Count a sample's numbers: below the first of two ends, in bins between them, above."""
        height, width = (int(self.table.shape[axis]) for axis in (0, -1))
        over = max(1.0, height * self.between * width / SAMPLE)
        down = min(height, math.ceil(math.sqrt(over)))
        across = min(width, math.ceil(over / down))
        sample = self.floats(self.table[::down, ..., ::across])
        if math.prod(map(int, sample.shape)) > 4 * BLOCK or self.low == self.high:
            return [], []
        numbers = sample[self.lib.isfinite(sample)]
        low, high = self.ends(numbers)
        if self.lib.__name__ == "torch":
            found = self.lib.histc(numbers, BINS, min=low, max=high)
        else:
            found = self.lib.histogram(numbers, BINS, (low, high))[0]
        # The one number that is far off may not be in the sample.
        below = max(int((numbers < low).sum()), int(self.low < low))
        above = max(int((numbers > high).sum()), int(self.high > high))
        return [below, *map(int, found.tolist()), above], [low, high]

    def ends(self, numbers: Any) -> tuple[float, float]:
        """Return where the histogram ends, so that a number far off leaves room for the others."""
        low, high = (float(self.lib.quantile(numbers, share)) for share in USUAL)
        if low == high:
            return self.low, self.high
        return max(self.low, 2 * low - high), min(self.high, 2 * high - low)


def floats_of(lib: Any, table: Any) -> tuple[Callable[[Any], Any], dict[str, Any]]:
    """Return what makes numbers of elements, and how results are allocated; of complex the size."""
    if lib.__name__ == "torch":
        double = table.dtype in (lib.float64, lib.complex128)
        kind = lib.float64 if double and table.device.type != "mps" else lib.float32
        if table.is_complex():
            return lambda block: block.abs().to(kind), {"dtype": kind, "device": table.device}
        return lambda block: block.to(kind), {"dtype": kind, "device": table.device}
    single = lib.float64 if table.dtype in (lib.float64, lib.complex128) else lib.float32
    if table.dtype.kind == "c":
        return lambda block: lib.abs(block).astype(single), {"dtype": single}
    return lambda block: block.astype(single, copy=False), {"dtype": single}


def packed(cells: Any) -> str:
    """Return numbers as base64 of 32-bit floats, rows first, the lowest byte first."""
    numbers = array("f", cells.reshape(-1).tolist())
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()
