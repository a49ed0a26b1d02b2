"""What is evaluated in every rank before it runs on (FACTS: debugpy 3 and K5).

Private parts of pydevd, so each expression is guarded and says whether it worked. Frameless
evaluates share pydevd's own globals: nothing here may leave a name behind.
"""

from __future__ import annotations

from typing import Final

# The 44 ms cure: pydevd writes header and body separately; without TCP_NODELAY the second waits.
# 6 is IPPROTO_TCP and 1 is TCP_NODELAY on every system. The answer is what the socket then says.
CURE: Final = (
    "[(w.sock.setsockopt(6, 1, 1), bool(w.sock.getsockopt(6, 1)))[1]"
    " for w in [__import__('pydevd').get_global_debugger().writer]][0]"
)
CURED: Final = "True"

# Children of a debugged process wait for a debugger for ever (K5), unless pydevd is kept from
# patching how they are started.
CHILDREN: Final = (
    "__import__('_pydev_bundle.pydev_monkey', fromlist=['x'])"
    "._get_apply_arg_patching.__globals__.update(_get_apply_arg_patching=lambda: False)"
)
