"""What the session is told at its start and never changes by itself."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from dap_mux.pure.rank_sets import Mesh


class Settings(Struct, frozen=True):
    """Times in seconds. `owns_job`: the ranks were started by us, so a client may end them.
    `threads`: the rows of a rank: `main`, `user`, `all`, or `auto` (`user` where the source of the
    ranks knows their task threads, else `main`).
    `folder` stands for a client's workspace that it does not name.
    `lingers`: how long the session waits after its last rank for its launcher, or its pod, to
    start ranks again; inf: until the job is over.
    `swallows_exceptions`: the framework of ranks to come is known to, see `Traits`.
    `ranks_from_client`: the first controller's `attach` or `launch` says who the ranks are.
    `key`: a secret by which ranks know this session again when its connection has broken.
    """

    view: str = "auto"
    scope: str = "auto"
    threads: str = "auto"
    classes_above: int = 64
    settle: float = 0.05
    line_patience: float = 0.3  # of output: for the rest of a line, before its pieces are shown
    late_settle: float = 0.1
    step_grace: float = 0.6
    request_timeout: float = 5.0
    breakpoint_timeout: float = 5.0
    greeting_timeout: float = 3.0
    silence_timeout: float = 60.0
    release_after: float = 0.0  # s without a word of ours, in which ranks run on; 0: never
    barrier_timeout: float = 5.0  # after which users are told who is missing at a barrier
    reconnect_gap: float = 0.3
    backoff_first: float = 0.25
    backoff_most: float = 10.0
    leave_timeout: float = 2.0
    clock_patience: float = 0.0  # a stop that lasts longer threatens the job; 0: nobody is asked
    library_patience: float = 0.0  # after which ranks are asked what torch knows; 0: never
    redial_timeout: float = 15.0
    owns_job: bool = False
    lingers: float = 0.0
    swallows_exceptions: bool = False
    ranks_from_client: bool = False
    redirect_output: bool = False
    job_name: str = ""
    folder: str = ""
    seed: int = 0
    meshes: Mapping[str, Mesh] = field(default_factory=dict)
    default_group: str = "job"
    key: str = ""

    def __repr__(self) -> str:
        """Say everything but the secret."""
        shown = (name for name in self.__struct_fields__ if name != "key")
        return f"Settings({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
