"""What ends a job while it is paused: clocks of torch's process groups, and of its scheduler.

Each expression is for a frameless evaluate, which works while a rank runs, in a collective too.
torch is never imported, and everything private in it is guarded and read back. What was changed
is kept in the rank itself, hung on what pydevd calls when its debugger leaves, however it leaves:
nothing stays changed behind us.
"""

from __future__ import annotations

from typing import Final

import msgspec

LONG: Final = 24 * 3600  # s that a collective may take while ranks are paused
_MOST: Final = 8  # collectives that one rank tells of

_COMMON: Final = """
def kept():
    api = __import__('_pydevd_bundle.pydevd_api', fromlist=['x']).PyDevdAPI
    return api, getattr(api.request_disconnect, 'clocks', None)

def put_back():
    api, clocks = kept()
    if clocks is None:
        return 0
    for backend, before, ours in reversed(clocks[1]):  # the last one counts, if there are two
        if backend.options._timeout == ours:
            backend._set_default_timeout(before)
    api.request_disconnect = clocks[0]
    return len(clocks[1])
"""

_LOOK: Final = """
def keep(changed):
    api, clocks = kept()
    if clocks is not None:
        clocks[1].extend(changed)
        return
    before = api.request_disconnect
    def leaving(self, *rest, **named):
        try:
            put_back()
        except Exception:
            pass
        return before(self, *rest, **named)
    leaving.clocks = before, list(changed)
    api.request_disconnect = leaving

def backends(c10d):
    found = {}
    for group in list(c10d._world.pg_map):
        for device in group._device_types:
            backend = group._get_backend(device)
            if hasattr(backend, '_set_default_timeout') and hasattr(backend, 'options'):
                found[id(backend)] = backend
    return list(found.values())

def extend(c10d):
    from datetime import timedelta
    wanted, changed, before, problem = timedelta(seconds=LONG), [], [], ''
    for backend in backends(c10d):
        was = backend.options._timeout
        if was >= wanted:
            continue
        backend._set_default_timeout(wanted)
        if backend.options._timeout != wanted:
            problem = 'torch has not taken the longer time-out'
            continue
        changed.append((backend, was, wanted))
        before.append(was.total_seconds())
    if changed:
        keep(changed)
    return before, problem

def waiting(c10d):
    import json, sys, time
    inner = sys.modules.get('torch._C._distributed_c10d')
    names = '_dump_nccl_trace_json', '_dump_fr_trace_json'
    dumps = [getattr(inner, name) for name in names if hasattr(inner, name)]
    now, found = time.time_ns(), {}
    for dump in dumps:
        for entry in json.loads(dump(True, True)).get('entries') or []:
            if not entry.get('retired') and entry.get('state') != 'completed':
                age = (now - entry['time_created_ns']) / 1e9
                name = entry['profiling_name'].partition(':')[2] or entry['profiling_name']
                one = [name, entry['timeout_ms'] / 1e3, age]
                found[entry['time_created_ns'], name] = one
    return [found[key] for key in sorted(found)][:MOST] if dumps else on_stack(sys)

def on_stack(sys):
    import threading
    frame = sys._current_frames().get(threading.main_thread().ident)
    name = ''
    while frame is not None:
        if frame.f_globals.get('__name__') == 'torch.distributed.distributed_c10d':
            name = frame.f_code.co_name
        frame = frame.f_back
    return [[name, None, None]] if name else []

def answer(extends):
    import json, os, sys, time
    told = {'before': [], 'waiting': [], 'problem': ''}
    c10d = sys.modules.get('torch.distributed.distributed_c10d')
    try:
        if c10d is not None and c10d.is_initialized():
            told['waiting'] = waiting(c10d)
            if extends:
                told['before'], told['problem'] = extend(c10d)
    except Exception as error:
        told['problem'] = '%s: %s' % (type(error).__name__, error)
    told['job'] = os.environ.get('SLURM_JOB_ID', '')
    end = os.environ.get('SLURM_JOB_END_TIME', '')
    told['left'] = int(end) - time.time() if end.isdigit() else None
    told['elastic'] = 'TORCHELASTIC_RUN_ID' in os.environ
    return json.dumps(told)
"""


class Collective(msgspec.Struct, frozen=True, array_like=True):
    """One that a rank has begun and not ended; s. `limit`, `age` None: torch does not tell."""

    name: str
    limit: float | None = None
    age: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds until it fails."""
        return None if self.limit is None or self.age is None else self.limit - self.age


class Clocks(msgspec.Struct, frozen=True):
    """What a rank tells. `before`: the time-outs (s) that were put up just now.

    `waiting`: collectives under way; `problem`: why a time-out is not put up. `job`: SLURM's
    number, and `left` the seconds until it ends that job; `elastic`: torchrun has started it.
    """

    before: list[float] = []
    waiting: list[Collective] = []
    problem: str = ""
    job: str = ""
    left: float | None = None
    elastic: bool = False


def look(*, extends: bool) -> str:
    """Return the expression whose value `clocks` reads; `extends`: put up what is too short."""
    return _run(_COMMON + _LOOK, f"answer({extends})")


PUT_BACK: Final = "put_back()"


def put_back() -> str:
    """Return the expression that undoes `look(extends=True)`; its value: how many time-outs."""
    return _run(_COMMON, PUT_BACK)


def _run(source: str, call: str) -> str:
    scope = f"{{'LONG': {LONG}, 'MOST': {_MOST}}}"
    return f"(lambda s: (exec({source!r}, s), eval({call!r}, s))[1])({scope})"


def clocks(result: object) -> Clocks:
    """Read an answer. Raises ValueError for nonsense: ranks' bytes are hostile too."""
    return msgspec.json.decode(str(result), type=Clocks)
