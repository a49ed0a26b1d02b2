"""What is evaluated in every rank before it runs on (FACTS: debugpy 3 and K5).

Private parts of pydevd, so each expression is guarded and says whether it worked. Frameless
evaluates share pydevd's own globals: nothing here may leave a name behind.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final
from zlib import compress

from dap_mux.engine.ranks.pydevd_patches import FILE_NAME, KEPT_AS, LESSONS

# Children of a debugged process wait for a debugger for ever (K5), unless pydevd is kept from
# patching how they are started.
CHILDREN: Final = (
    "__import__('_pydev_bundle.pydev_monkey', fromlist=['x'])"
    "._get_apply_arg_patching.__globals__.update(_get_apply_arg_patching=lambda: False)"
)

# The contrary, for `"subProcess": true`: as pydevd has it, also where it was kept from patching
# before (by us, or by `debugpy.configure(subProcess=False)`, as our own in-rank agent does).
DEBUG_CHILDREN: Final = (
    "[m._get_apply_arg_patching.__globals__.update(_get_apply_arg_patching="
    "lambda m=m: getattr(m._arg_patch, 'apply_arg_patching', True)) or"
    " m.patch_new_process_functions()"
    " for m in [__import__('_pydev_bundle.pydev_monkey', fromlist=['x'])]][0]"
)


# Packed, for every rank's adapter decodes and encodes it, and the rank compiles it, at each attach:
# a third of the bytes, and no escapes in them (a quarter of the time to attach 32, measured).
PACKED: Final = b64encode(compress(LESSONS.encode(), 9)).decode()
UNPACKED: Final = f"__import__('zlib').decompress(__import__('base64').b64decode({PACKED!r}))"


# The 44 ms cure: pydevd writes header and body separately; without TCP_NODELAY the second waits.
# 6 is IPPROTO_TCP and 1 is TCP_NODELAY on every system. With it goes all else that a rank is to do
# before it runs on, for a message of its own costs each rank 2 ms of CPU while many attach
# (measured). The answer is what the socket then says, whether its children were seen to, and `WHO`.
def _cure(children: str) -> str:
    return (
        "[(w.sock.setsockopt(6, 1, 1),"
        f" '%s %s' % (bool(w.sock.getsockopt(6, 1)), now['learn'](db, {children!r})))[1]"
        " for db in [__import__('pydevd').get_global_debugger()] for w in [db.writer]"
        f" for kept in [vars(db).setdefault({KEPT_AS!r}, {{}})]"
        f" for now in [kept or exec(compile({UNPACKED}, {FILE_NAME!r}, 'exec'), kept) or kept]][0]"
    )


CURE: Final = _cure(CHILDREN)
CURE_AND_DEBUG_CHILDREN: Final = _cure(DEBUG_CHILDREN)

# multiprocessing's own helper process runs no line of the user's: it is no worker.
IS_TRACKER: Final = (
    "'multiprocessing.resource_tracker' in"
    " ' '.join(getattr(__import__('sys'), 'orig_argv', None) or __import__('sys').argv)"
)
YES: Final = "True"
