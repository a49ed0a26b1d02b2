"""Ray's own `breakpoint()` and post-mortem debugging in a rank.

Under `justMyCode` the breakpoint stops in the frame of the user's code. An exception that a rank
has stopped for where it was raised is not shown again by `RAY_DEBUG_POST_MORTEM=1`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

POST_MORTEM = "_post_mortem"


def stop_in_users_frame() -> None:
    """Ray asks debugpy to stop in a frame of Ray's, where `justMyCode` lets none stop."""
    module = sys.modules.get("ray.util.debugpy")
    if module is None:
        return
    vars(module)["_debugpy_breakpoint"] = _stop_at_caller
    post_mortem = vars(module).get(POST_MORTEM)
    if post_mortem is not None and post_mortem.__module__ == module.__name__:
        vars(module)[POST_MORTEM] = _unless_shown(post_mortem)


def _unless_shown(post_mortem: Callable[[], Any]) -> Callable[[], None]:
    def post_mortem_unless_shown() -> None:
        import sys  # noqa: PLC0415  (this function outlives the module)

        debugger = sys.modules["pydevd"].get_global_debugger()
        traceback: Any = sys.exc_info()[2]
        is_users = False
        while traceback is not None:
            is_users = is_users or debugger.in_project_scope(traceback.tb_frame)
            traceback = traceback.tb_next
        attached = sys.modules["debugpy"].is_client_connected()
        if not (attached and is_users and debugger.break_on_user_uncaught_exceptions):
            post_mortem()

    return post_mortem_unless_shown


def _stop_at_caller() -> None:
    import sys  # noqa: PLC0415  (this function outlives the module)

    users: Any = sys._getframe(1)  # noqa: SLF001
    while users.f_back and users.f_globals.get("__name__", "").startswith("ray.util."):
        users = users.f_back
    pydevd = sys.modules["pydevd"]
    pydevd.get_global_debugger().block_until_configuration_done()
    pydevd.settrace(
        suspend=True,
        trace_only_current_thread=True,
        patch_multiprocessing=False,
        stop_at_frame=users,
    )
