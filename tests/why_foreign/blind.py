"""Faults that were rebuilt by an author who had not seen the rules.

Programs and expected verdicts were written from the issues' text, without a look at the tool, its
tests, or its documentation, and before the first run with it. The programs were only seen to hang.
"""

from __future__ import annotations

from typing import Final

from tests.why_foreign.rows import Fault

BLIND: Final = (
    Fault(
        "save_beside_training.py",
        ("@culprit|all_reduce|allreduce|save", "all_gather|allgather|thread"),
        "rank 2 has not waited for the save in its thread and is in all_reduce; the others' saves"
        " gather from all, and their main threads wait for them",
    ),
    Fault(
        "request_without_timeout.py",
        ("@culprit|size_of|getresponse", "socket|http|server|connection|network"),
        "rank 2 reads from a connection to a server that never answers",
    ),
    Fault(
        "kernel_compiled_at_first_use.py",
        ("@culprit|sampling_module", "child|subprocess|waitpid|Popen"),
        "rank 2 waits for a child that computes on and on; the others are in all_reduce",
    ),
    Fault(
        "put_from_another_thread.py",
        ("@culprit|next_batch", "asyncio|event loop|queue|coroutine|select|epoll"),
        "rank 2's event loop sleeps, as it was not woken when another thread put into its queue",
    ),
    Fault(
        "pipe_end_left_open.py",
        ("@culprit|count_in_process|recv", "pipe|child|zombie"),
        "rank 2 reads from a pipe that only itself could still write to, since its child has ended",
    ),
    Fault(
        "group_not_passed.py",
        ("@culprit|reduce_loss", "group|barrier"),
        "rank 2 reduces in the group of all ranks instead of that of ranks 0 and 2",
    ),
    Fault(
        "tags_out_of_step.py",
        ("@culprit|shift|recv|receive", "tag|send|sent|message"),
        "rank 2 sends and receives with a tag that is one ahead of the others'",
    ),
    Fault(
        "daemon_keeps_output.py",
        ("@culprit|start_server|check_output", "pipe|child|subprocess|communicate|inherit|stdout"),
        "rank 2 reads a command's output; the command has ended, and its daemon holds the pipe",
    ),
    Fault(
        # Of 12,000 since its first run: on a quiet machine 5,000 are done before anybody looks.
        "preconditioner_of_large_layer.py",
        ("@culprit|inverse_root", "svd|running|runs|computing|computes|busy|cpu|executing"),
        "rank 2 computes the singular values of a large matrix; the others are in all_reduce",
    ),
    Fault(
        "notice_to_one_rank.py",
        ("@culprit|checkpoint|barrier", "signal|handler|all_reduce|allreduce"),
        "rank 2 is in the barrier of a signal handler; the others, not signalled, in all_reduce",
    ),
    Fault(
        "mask_of_short_documents.py",
        ("@culprit|attention_mask", "running|runs|computing|computes|busy|cpu|executing|loop"),
        "rank 2 writes a large mask once for each of thousands of documents, which takes minutes",
    ),
    Fault(
        "result_for_fewer_inputs.py",
        ("@culprit|reward", "future|thread|condition"),
        "rank 2 waits for a future whose input was left out; the thread that serves waits for more",
    ),
)
