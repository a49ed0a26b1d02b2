"""Faults that were rebuilt last, after the rules for those of `expected` and `later`.

Programs and expected verdicts were written from the issues' text, without a look at the rules and
before the first run, and are scored by themselves, as those of `later` are.
"""

from __future__ import annotations

from typing import Final

from tests.why_foreign.rows import Fault

NEWEST: Final = (
    Fault(
        "signal_handler_wants_lock.py",
        ("@culprit|flush", "signal|handler|lock|itself"),
        "rank 2 waits in a signal handler for a lock that its own thread holds",
    ),
    Fault(
        "summary_writer_died.py",
        ("@culprit|add_scalar", "queue|full|thread"),
        "rank 2 puts into a full queue, and the thread that emptied it has died of an exception",
    ),
    Fault(
        "overflow_on_one_rank.py",
        ("@culprit|broadcast", "all_reduce|allreduce|clip"),
        "rank 2 has left out the reduction of the norm, in which the others are, for broadcast",
    ),
    Fault(
        "barrier_on_the_way_out.py",
        ("@culprit|__exit__|barrier", "all_reduce|allreduce|exception|ValueError"),
        "rank 2 leaves a block by an exception and is in its barrier; the others are in all_reduce",
    ),
    Fault(
        "freed_on_one_rank.py",
        ("@culprit|__del__|barrier", "all_reduce|allreduce|__del__|collected"),
        "rank 2 alone frees a buffer, whose __del__ is a barrier; the others are in all_reduce",
    ),
    Fault(
        "barrier_with_lock_held.py",
        ("@culprit|barrier", "lock"),
        "rank 2 is in the barrier with a file lock, for which the others wait",
    ),
    Fault(
        "lock_of_killed_child.py",
        ("@culprit|prepare", "lock|semaphore|acquire"),
        "rank 2 waits for a lock that its killed child held",
    ),
    Fault(
        "close_before_cancel.py",
        ("@culprit|close", "thread|join"),
        "rank 2 joins a thread, which waits for an event that is set after the join",
    ),
    Fault(
        "rendezvous_on_local_disk.py",
        ("@culprit|init_process_group", "file|store|rendezvous|init_process_group"),
        "rank 2 waits at another file for the rendezvous than the others",
    ),
    Fault(
        "layer_dropped_on_one_rank.py",
        ("@culprit|forward|backward", "all_gather|allgather|reduce_scatter|barrier"),
        "rank 2 has dropped other layers than the rest, and its collectives are not theirs",
    ),
    Fault(
        "monitor_outlives_exception.py",
        ("@culprit|monitor|shutdown|exit", "thread|join|exit|shutdown|finish|ended"),
        "rank 2 has ended by an exception, and its exit waits for a thread that is no daemon",
    ),
    Fault(
        "retry_after_an_hour.py",
        ("@culprit|fetch", "sleep"),
        "rank 2 sleeps for an hour before it tries again; the others are in the barrier",
    ),
    Fault(
        "slot_not_released.py",
        ("@culprit|all_reduce|allreduce", "acquire|poll|sleep|loop"),
        "rank 2 has left the ring without a release and is in all_reduce; the others poll the ring",
    ),
    Fault(
        "child_forked_with_threads.py",
        ("@culprit|preprocess|join", "child|fork|process"),
        "rank 2 joins a forked child, which waits for threads that it does not have",
    ),
    Fault(
        "both_send_first.py",
        ("@culprit|exchange|send", "send"),
        "ranks 2 and 3 send to each other, and neither receives",
        culprits=(frozenset({2}), frozenset({3}), frozenset({2, 3})),
    ),
    Fault(
        "no_tokens_not_sent.py",
        ("@culprit|all_reduce|allreduce", "recv|receive|wait"),
        "rank 2 has sent nothing and is in all_reduce; the others wait to receive from it",
    ),
    Fault(
        "task_never_done.py",
        ("@culprit|publish", "asyncio|event loop|queue|coroutine|select"),
        "rank 2 runs an event loop, in which a coroutine joins a queue with a task never done",
    ),
    Fault(
        "semaphore_kept.py",
        ("@culprit|generate", "semaphore|lock|acquire|condition"),
        "rank 2 waits for a semaphore, which an exception has left taken",
    ),
    Fault(
        "joined_with_metric.py",
        ("@culprit|join|__exit__", "all_gather|allgather|all_reduce|allreduce"),
        "rank 2 has no inputs left and is in join(); the others gather a metric",
    ),
    Fault(
        "log_nobody_reads.py",
        ("@culprit|report", "write|pipe"),
        "rank 2 writes to a full pipe that nobody reads; the others are in all_reduce",
    ),
)
