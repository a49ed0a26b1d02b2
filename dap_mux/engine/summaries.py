"""Tensors and arrays are summarised in the rank: what comes here is a line, never their data.

The text below runs inside the debugged process. It imports nothing that is not there already, and
leaves nothing behind. What it cannot find out is left out of the summary. Two things it must not
do, for they would hang the rank: wait for a GPU that is busy, perhaps with a collective that never
ends, and start a collective of its own (as operators of a `DTensor` do).
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.asking import is_expression

GPU_WAIT: Final = 0.2  # s for a GPU to finish what it has to do before the value is there

SOURCE: Final = f'''
import math, sys, time

def seen(value):
    """The value itself, or what stands for it."""
    try:
        for library, name in (("torch", "Tensor"), ("numpy", "ndarray"), ("numpy", "generic")):
            kind = getattr(sys.modules.get(library), name, None)
            if isinstance(kind, type) and isinstance(value, kind):
                return stand_in(value, sys.modules[library])
    except Exception:
        pass
    return value

def stand_in(value, library):
    about = dict(shape=tuple(map(int, value.shape)), dtype=str(value.dtype).split(".")[-1])
    if library.__name__ == "torch":
        about["device"] = str(value.device)
    one = None
    try:
        more = of_torch if library.__name__ == "torch" else of_numpy
        one = more(value, library, about)
    except Exception:
        pass
    text = one if one is not None else line(type(value).__name__, about)
    kind = type(type(value).__name__, (), dict(__repr__=lambda self: text, __module__=""))
    made = kind()
    made.__dict__.update(about)
    return made

def line(name, about):
    rest = [about[key] for key in ("dtype", "device") if key in about]
    parts = ["%s%s %s" % (name, list(about["shape"]), " ".join(rest))]
    parts += ["norm %.9g" % about["norm"]] if "norm" in about else []
    parts += ["%s %s" % (key, about[key]) for key in ("nan", "inf") if key in about]
    parts += [about[key] for key in ("pending",) if key in about]
    return " \\u00b7 ".join(parts)

def shortest(number, again):
    """As few digits as tell this number from others of its kind."""
    if isinstance(number, float):
        for digits in range(1, 10):
            text = "%.*g" % (digits, number)
            if again(float(text)) == number:
                return repr(float(text))
    return repr(number)

def of_torch(value, torch, about):
    with torch.no_grad():
        data = value.detach()
        if hasattr(data, "to_local"):
            data = data.to_local()
            about["local"] = tuple(map(int, data.shape))
        if type(data).__name__ == "AsyncCollectiveTensor" or not is_there(data, torch):
            about["pending"] = "not computed yet"
            return None
        if value.numel() == 1 and data.numel() == 1:
            return shortest(data.item(), lambda x: torch.tensor(x, dtype=data.dtype).item())
        floating = data.is_floating_point() or data.is_complex()
        small = floating and data.element_size() < 4
        if not floating:
            data = data.to(torch.float32)
        wide = dict(dtype=torch.float32) if small else dict()
        about["norm"] = norm = float(torch.linalg.vector_norm(data, **wide))
        about["nan"] = about["inf"] = 0
        if not math.isfinite(norm):  # else there is neither
            about["nan"], about["inf"] = int(data.isnan().sum()), int(data.isinf().sum())

def is_there(data, torch):
    """Whether the GPU has nothing left to do; a moment's work is waited for."""
    if data.device.type != "cuda":
        return True
    stream, until = torch.cuda.current_stream(data.device), time.monotonic() + {GPU_WAIT}
    while not stream.query():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True

def of_numpy(value, numpy, about):
    if value.dtype.kind not in "biufc":
        if value.shape == () and not isinstance(value, numpy.ndarray):
            return repr(value)
        return None
    if value.size == 1:
        return shortest(value.item(), lambda x: value.dtype.type(x).item())
    total, nan, inf = 0.0, 0, 0
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with numpy.errstate(all="ignore"):
        for block in numpy.nditer(value, flags, buffersize=1 << 20):
            size = numpy.abs(block).astype("float64")
            total += float(numpy.dot(size, size))
            nan += int(numpy.isnan(size).sum())
            inf += int(numpy.isinf(size).sum())
    about["norm"], about["nan"], about["inf"] = total**0.5, nan, inf
'''

_CALL: Final = (
    "(lambda value, inside: (exec({!r}, inside), inside['seen'](value))[1])(({}\n), {{}})"
)


def summarised(text: str) -> str:
    """Return an expression for the value of `text`, or for a summary of a tensor or array.

    A summary's `repr` is one line; a tensor of one element is its number. It has the type's name,
    and `shape`, `dtype`, `device`, `norm`, `nan`, `inf` as attributes. Statements stay as they are.
    """
    python = text.replace("$", "_")  # `$rank` and its like are put in later
    return _CALL.format(SOURCE, text) if is_expression(python) else text
