"""The modules of `dap_mux.injected` that the engine sends to ranks, and how it calls them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# The name of the file that they are compiled as. pydevd takes files whose names begin like this for
# its own, so a step of the user's does not end in them; `<string>` would be the user's.
FILE_NAME: Final = "<builtin dap_mux>"


class InjectedSources(Struct, frozen=True):
    """The source of each; the session reads them, for the engine reads no files."""

    adapter_keeper: str
    adapter_program: str
    attach: str
    child_processes: str
    comparisons: str
    conditions: str
    evaluation: str
    evidence: str
    farewell: str
    file_probe: str
    flight_recorder: str
    held_locks: str
    logpoints: str
    missing_files: str
    monarch_actors: str
    output_redirect: str
    pdb_views: str
    process_identity: str
    progress: str
    pydevd_patches: str
    ray_breakpoints: str
    send_queue: str
    source_code: str
    stacks: str
    static_values: str
    stop_details: str
    task_trees: str
    tensor_summary: str
    thread_states: str
    timeout_probe: str
    torch_state: str
    tracing: str
    user_threads: str
    waiting_calls: str
    waiting_frames: str


def call(source: str, function: str, *arguments: str) -> str:
    """Return an expression: a function of a module, called in a rank.

    `arguments` are Python themselves: their names are those of the frame where the expression is
    evaluated, which may even have others for builtins (`compile = True`). No name stays behind:
    without a frame, pydevd evaluates in globals of its own.
    """
    given = "".join(f"{argument}, " for argument in arguments)
    return (
        "(lambda builtins, module, *given: (builtins.exec(builtins.compile("
        f"{source!r}, {FILE_NAME!r}, 'exec'), module), module[{function!r}](*given))[1])"
        f"(__import__('builtins'), {{}}, {given})"
    )
