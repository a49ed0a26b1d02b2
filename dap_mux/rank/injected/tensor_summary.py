"""Tensors and arrays are summarised in the rank: a line goes to the session, never their data."""

from __future__ import annotations

import math
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

    About = dict[str, Any]

ABOUT = ("shape", "dtype", "device", "placements", "local", "norm", "nan", "inf", "pending")
DEVICE_WAIT = 0.2  # s for a device to finish what it has to do before the value is there
STATISTICS_WITHIN = 0.5  # s; what a device has not computed by then is left out
PENDING = "not computed yet"
THREAD = "dap-mux: summary of a value on "
ONE_BLOCK = 1 << 20


def seen(value: Any) -> Any:
    """Return the value itself, or what stands for it."""
    with suppress(Exception):  # a summary is a convenience: without one the value is shown
        for library, name, describe in KINDS:
            kind = getattr(sys.modules.get(library), name, None)
            if isinstance(kind, type) and isinstance(value, kind):
                return stand_in(value, describe, sys.modules[library])
    return value


def stand_in(value: Any, describe: Callable[[Any, Any, About], str | None], library: Any) -> Any:
    """Return an object with the type's name, the summary as its `repr`, and its parts."""
    about: About = {
        "shape": tuple(map(int, value.shape)),
        "dtype": str(value.dtype).split(".")[-1],
    }
    one = None
    with suppress(Exception):  # what is known by then is shown
        one = describe(value, library, about)
    text = one if one is not None else line(type(value).__name__, about)
    members = {"__repr__": lambda _: text, "__module__": ""}
    made = type(type(value).__name__, (), members)()
    made.__dict__.update({name: about[name] for name in ABOUT if name in about})
    return made


def line(name: str, about: About) -> str:
    """Return what is known of a value; what is of the local part alone stands behind `local`."""
    parted = "placements" in about
    rest = [about[key] for key in ("dtype", "device") if key in about]
    head = "{}{}{}".format(name, " global " if parted else "", list(about["shape"]))
    parts = [" ".join([head, *rest])]
    if parted:
        parts.append(about["placements"])
        parts += ["local {}".format(about["local"])] if "local" in about else []
    numbers = ["norm {:.9g}".format(about["norm"])] if "norm" in about else []
    numbers += [f"{key} {about[key]}" for key in ("nan", "inf") if key in about]
    if parted and "local" in about and numbers:
        parts[-1] += " " + " ".join(numbers)
    else:
        parts += numbers
    parts += [about["pending"]] if "pending" in about else []
    return " \u00b7 ".join(parts)


def shortest(number: Any, again: Callable[[float], Any]) -> str:
    """As few digits as tell this number from others of its kind."""
    if isinstance(number, float):
        for digits in range(1, 10):
            text = "{:.{}g}".format(number, digits)
            if again(float(text)) == number:
                return repr(float(text))
    return repr(number)


def all_threads() -> list[threading.Thread]:
    """Return also those that debugpy hides from `threading.enumerate`, its own and ours."""
    saved = sys.modules.get("_pydev_bundle._pydev_saved_modules")
    enumerate_all = getattr(saved, "pydevd_saved_threading_enumerate", None)
    return list((enumerate_all or threading.enumerate)())


# A summary imports nothing that is not there already, and leaves nothing behind. What cannot be
# found out is left out of it. Two things it must not do, for they would hang the rank: wait for a
# device that is busy, perhaps with a collective that never ends, and start a collective of its own
# (as operators of a `DTensor` do).
def in_time(device: str, about: About, work: Callable[[About], str | None]) -> str | None:
    """Do `work` in a thread of its own, which a device that hangs may keep.

    Who asks for another value on that device is not kept by it too.
    """
    name = THREAD + device
    if any(thread.name == name for thread in all_threads()):
        about["pending"] = PENDING
        return None
    found: About = {}
    answer: list[str | None] = []

    def run() -> None:
        one = None
        with suppress(Exception):  # what is known by then is shown
            one = work(found)
        answer.append(one)

    thread = threading.Thread(target=run, name=name, daemon=True)
    # debugpy neither shows nor stops it.
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()
    thread.join(STATISTICS_WITHIN)
    if not answer:
        about["pending"] = PENDING
        return None
    about.update(found)
    return answer[0]


# torch


def of_torch(value: Any, torch: Any, about: About) -> str | None:
    """Describe a tensor; return its number where it has one element."""
    about["device"] = str(value.device)
    with torch.no_grad():
        data = value.detach()
        whole = True
        if hasattr(data, "to_local"):
            about["placements"] = ", ".join(map(str, value.placements))
            whole = not any(each.is_partial() for each in value.placements)
            data = data.to_local()
        if type(data).__name__ == "AsyncCollectiveTensor":
            about["pending"] = PENDING
            return None
        if "placements" in about:
            about["local"] = list(map(int, data.shape))
        kind = data.device.type
        if kind == "cpu":
            return torch_statistics(value, data, torch, about, whole=whole)
        module: Any = getattr(torch, kind, None)
        stream = module.current_stream(data.device) if hasattr(module, "current_stream") else None
        if not is_there(stream):
            about["pending"] = PENDING
            return None

    def work(found: About) -> str | None:
        with torch.no_grad():
            if stream is None:
                return torch_statistics(value, data, torch, found, whole=whole)
            with module.stream(stream):  # it is each thread's own; the data is there on this one
                return torch_statistics(value, data, torch, found, whole=whole)

    return in_time(str(data.device), about, work)


def torch_statistics(value: Any, data: Any, torch: Any, about: About, *, whole: bool) -> str | None:
    """Count what lies in a tensor of this rank; return its number where it is one."""
    if whole and value.numel() == 1 and data.numel() == 1:
        return shortest(data.item(), lambda x: torch.tensor(x, dtype=data.dtype).item())
    floating = data.is_floating_point() or data.is_complex()
    small = floating and data.element_size() < 4
    if not floating:
        data = data.to(torch.float32)
    wide = {"dtype": torch.float32} if small else {}
    about["norm"] = norm = float(torch.linalg.vector_norm(data, **wide))
    about["nan"] = about["inf"] = 0
    if not math.isfinite(norm):  # else there is neither
        about["nan"], about["inf"] = int(data.isnan().sum()), int(data.isinf().sum())
    return None


def is_there(stream: Any) -> bool:
    """Whether a device has nothing left to do; a moment's work is waited for."""
    if not hasattr(stream, "query"):
        return True
    until = time.monotonic() + DEVICE_WAIT
    while not stream.query():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


# jax


def of_jax(value: Any, _: Any, about: About) -> str | None:
    """Describe an array by its parts that are on this process's devices.

    `jax` computes in the background, and reads of what is not computed yet wait for it.
    """
    shards = value.addressable_shards
    devices = sorted({str(shard.device) for shard in shards})
    about["device"] = devices[0] if len(devices) == 1 else f"{len(devices)} devices"
    parts = {str(shard.index): shard.data for shard in shards}  # copies of one part count once
    if len(parts) > 1 or not value.is_fully_addressable:
        spec = getattr(value.sharding, "spec", None)
        about["placements"] = str(value.sharding if spec is None else spec)
        local = [list(map(int, part.shape)) for part in parts.values()]
        same = all(shape == local[0] for shape in local)
        times = f"{len(local)} x " if len(local) > 1 else ""
        about["local"] = f"{times}{local[0]}" if same else str(local)
    numpy = sys.modules["numpy"]

    def work(found: About) -> str | None:
        arrays = [numpy.asarray(part) for part in parts.values()]
        # Of bfloat16 and its like numpy knows the size alone.
        arrays = [each.astype("float32") if each.dtype.kind == "V" else each for each in arrays]
        if "placements" not in about and len(arrays) == 1:
            return of_numpy(arrays[0], numpy, found)
        numpy_statistics(arrays, numpy, found)
        return None

    return in_time(about["device"], about, work)


# numpy


def of_numpy(value: Any, numpy: Any, about: About) -> str | None:
    """Describe an array; return its number where it has one element."""
    if value.dtype.kind not in "biufc":
        if value.shape == () and not isinstance(value, numpy.ndarray):
            return repr(value)
        return None
    if value.size == 1:
        return shortest(value.item(), lambda x: value.dtype.type(x).item())
    numpy_statistics([value], numpy, about)
    return None


def numpy_statistics(arrays: list[Any], numpy: Any, about: About) -> None:
    """Count what lies in arrays, some megabytes at a time."""
    total, nan, inf = 0.0, 0, 0
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with numpy.errstate(all="ignore"):
        for array in arrays:
            for block in numpy.nditer(array, flags, buffersize=ONE_BLOCK):
                size = numpy.abs(block).astype("float64")
                total += float(numpy.dot(size, size))
                nan += int(numpy.isnan(size).sum())
                inf += int(numpy.isinf(size).sum())
    about["norm"], about["nan"], about["inf"] = total**0.5, nan, inf


KINDS = (
    ("torch", "Tensor", of_torch),
    ("jax", "Array", of_jax),
    ("numpy", "ndarray", of_numpy),
    ("numpy", "generic", of_numpy),
)
