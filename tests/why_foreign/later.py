"""Faults that were rebuilt after the rules for those of `expected` had been written.

Programs and expected verdicts were written from the issues' text before the first run, and are
scored by themselves: they say how `why` does on what nobody had in mind.
"""

from __future__ import annotations

from typing import Final

from tests.why_foreign.rows import Fault

LATER: Final = (
    Fault(
        "reduce_to_another_rank.py",
        ("@culprit|report|reduce",),
        "rank 2 reduces to itself, all others to rank 0, which waits for it",
    ),
    Fault(
        "result_in_its_own_loop.py",
        ("@culprit|on_write", "result|future|threadsafe|asyncio|lock"),
        "rank 2 waits for a coroutine in the thread of the loop that has to run it",
    ),
    Fault(
        "errors_of_child_unread.py",
        ("@culprit|check_remote", "child|subprocess|pipe"),
        "rank 2 reads the output of a child, which is blocked writing its errors",
    ),
    Fault(
        "database_of_runs_locked.py",
        ("@culprit|begin_run", "sqlite|database|execute|lock"),
        "rank 2 waits for the lock of a sqlite database",
    ),
    Fault(
        "world_of_another_size.py",
        ("@culprit|init_process_group", "world|size|6 ranks|rendezvous|init_process_group"),
        "rank 2 was told of six processes, and there are four",
    ),
    Fault(
        "vocabulary_on_one_rank.py",
        ("@culprit|load_vocabulary|barrier", "broadcast|all_reduce|allreduce|barrier"),
        "rank 2 alone is in a barrier; the others broadcast",
    ),
    Fault(
        "update_group_left_out.py",
        ("@culprit|all_reduce|allreduce", "new_group|group"),
        "rank 2 has left out new_group, in which the others wait, and is in all_reduce",
    ),
    Fault(
        "packs_without_end.py",
        ("@culprit|pack", "busy|cpu|comput|running|loop|python|at work"),
        "rank 2 tries places without end; the others wait for its broadcast",
    ),
    Fault(
        "exchange_beyond_the_edge.py",
        ("@culprit|exchange", "recv|receive"),
        "rank 2 receives from rank 1, which has nothing to send and is in all_reduce",
        culprits=(frozenset({2}), frozenset({1, 2})),
    ),
    Fault(
        "barrier_for_too_many_threads.py",
        ("@culprit|tune|evaluate", "thread|future|result|executor|barrier"),
        "rank 2 waits for threads, which wait in a barrier for more than there are",
    ),
    Fault(
        "patience_on_one_rank.py",
        ("@culprit|all_gather|allgather", "all_reduce|allreduce|fit"),
        "rank 2 has left the loop for all_gather; the others are in all_reduce",
    ),
    Fault(
        "asks_for_a_passphrase.py",
        ("@culprit|fetch", "child|subprocess|popen"),
        "rank 2 waits for a child process, which reads an answer from a terminal",
    ),
    Fault(
        "batch_never_fetched.py",
        ("@culprit|prefetched", "queue|data|loader|fetch"),
        "rank 2 waits for its queue, whose thread waits for a store; the others are in the barrier",
    ),
)
