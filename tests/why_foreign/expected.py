"""What a right answer says of each program, written on 2026-11-28.

Programs and expected verdicts were written from the issues' text before the first run; a changed
expectation needs a reason, as a comment in its row.
"""

from __future__ import annotations

from typing import Final

from tests.why_foreign.rows import Fault, Healthy

FAULTS: Final = (
    Fault(
        "breakpoint_on_one_rank.py",
        ("@culprit|remote_breakpoint", "accept|socket|connection|connect"),
        "rank 2 waits in accept() for a debugger to connect; the others wait in all_reduce",
    ),
    Fault(
        "checkpoint_into_pipe.py",
        ("@culprit|save", "open|fifo|pipe"),
        "rank 2 opens a named pipe for writing, which nobody reads; the others wait in a barrier",
    ),
    Fault(
        "checkpoint_not_seen.py",
        ("@culprit|all_gather|allgather", "broadcast"),
        "rank 2 skipped the broadcast, in which the others wait, and is in all_gather_object",
    ),
    Fault(
        "checkpoint_with_barrier.py",
        ("@culprit|save_checkpoint|barrier", "backward|all_reduce|allreduce|barrier"),
        "rank 2 alone is in the barrier inside of save_checkpoint; the others are in a backward",
    ),
    Fault(
        "child_output_unread.py",
        ("@culprit|convert", "child|subprocess|popen"),
        "rank 2 waits for a child process, which is blocked writing to a pipe that is not read",
    ),
    Fault(
        "child_waits_for_input.py",
        ("@culprit|pull", "child|subprocess|popen"),
        "rank 2 waits for a child process, which reads its standard input",
    ),
    Fault(
        "collects_garbage.py",
        ("@culprit|gc.collect", "gc|garbage|busy|cpu|comput|running|slow"),
        "rank 2 is busy in gc.collect(), again and again; the others wait in all_reduce",
    ),
    Fault(
        "ddp_evaluation_on_one_rank.py",
        ("@culprit|validate|forward", "broadcast|buffer|barrier"),
        "rank 2 alone is in the forward of the DDP model, which broadcasts its buffers",
    ),
    Fault(
        "ddp_fewer_batches.py",
        ("@culprit|barrier", "backward|all_reduce|allreduce|gradient|batch|loop"),
        "rank 2 has left the loop for the barrier; the others reduce gradients in backward",
    ),
    Fault(
        "ddp_skipped_backward.py",
        ("@culprit|all_gather|allgather", "backward|all_reduce|allreduce|gradient"),
        "rank 2 skipped its backward and gathers metrics; the others are in the backward",
    ),
    Fault(
        "ddp_unused_parameters.py",
        ("@culprit|all_gather|allgather|evaluate", "backward|all_reduce|allreduce|gradient"),
        "layer b got no gradient on rank 2, which went on to all_gather; the others wait for it",
    ),
    Fault(
        "exception_swallowed.py",
        ("@culprit|SHUTDOWN", "event|exception|ValueError|threading|lock"),
        "rank 2 has left its steps by an exception and waits for an event nobody sets",
    ),
    Fault(
        "expert_without_tokens.py",
        ("@culprit|all_gather|allgather", "all_reduce|allreduce|reduc|collective"),
        "rank 2 left out the reduction of expert 3, in which the others wait, and is in all_gather",
    ),
    Fault(
        "file_lock_held.py",
        ("@culprit|download", "lock", "recv|socket|read|holds|held"),
        "rank 2 holds the file lock, for which the others wait, and itself waits for a socket",
    ),
    Fault(
        "fsdp2_empty_batch.py",
        ("@culprit|all_reduce|allreduce", "all_gather|allgather|forward"),
        "rank 2 skipped its forward and is in all_reduce; the others gather parameters",
    ),
    Fault(
        "full_tensor_on_one_rank.py",
        ("@culprit|full_tensor", "all_gather|allgather|full_tensor|redistribute|barrier"),
        "rank 2 alone calls full_tensor(), a collective; the others are in the barrier",
    ),
    Fault(
        "gather_to_another_rank.py",
        ("@culprit|gather",),
        "rank 2 gathers to itself, all others to rank 0, which waits for it",
    ),
    Fault(
        "groups_created_in_other_order.py",
        ("@culprit|new_group",),
        "rank 2 creates the group pipeline first, all others the group tensor",
    ),
    Fault(
        "groups_in_other_order.py",
        ("@culprit|all_reduce|allreduce", "group|order"),
        "rank 2 reduces over the world first, where ranks 1 and 3 wait for it in the smaller group",
    ),
    Fault(
        "handler_lock_over_fork.py",
        ("@culprit|waitpid|emit", "child|fork"),
        "rank 2 waits for a forked child, which waits for a lock that was held at the fork",
    ),
    Fault(
        "import_in_thread.py",
        ("@culprit|registry|import", "thread|join|import"),
        "rank 2 joins a thread, which waits for the import that the main thread is in",
    ),
    Fault(
        "join_before_drain.py",
        ("@culprit|preprocess|join", "child|queue"),
        "rank 2 joins a child, which cannot put its result into the full pipe of the queue",
    ),
    Fault(
        "key_nobody_sets.py",
        ("@culprit|weights/7", "store|key"),
        "rank 2 waits for the key weights/7, which nobody sets; the others wait for its loaded/2",
    ),
    Fault(
        "killed_worker.py",
        ("SIGKILL|killed|signal 9|gone|dead|died|ended|exited|no longer|not running|lost",),
        "the process of rank 2 was killed; the others poll its flag",
    ),
    Fault(
        "late_for_rendezvous.py",
        ("@culprit|download", "http|socket|recv|read|network|connection|response"),
        "rank 2 waits for an answer over http, before init_process_group, where the others are",
    ),
    Fault(
        "library_holds_gil.py",
        ("@culprit|solve|GIL", "GIL|native|C code|C call|library|ctypes|mutex|lock"),
        "rank 2 is in a call of a C library that does not return, and holds the GIL",
    ),
    Fault(
        "loader_forked_with_lock.py",
        ("@culprit|DataLoader|data loader|loader", "worker|child|lock"),
        "rank 2 waits for a worker of its data loader, which waits for a lock held at the fork",
    ),
    Fault(
        "loader_worker_stuck.py",
        ("@culprit|DataLoader|data loader|loader", "worker|child|data"),
        "rank 2 waits for a worker of its data loader, which sleeps in __getitem__",
    ),
    Fault(
        "locks_in_two_orders.py",
        ("@culprit|reindex", "lock", "thread|deadlock|itself"),
        "two threads of rank 2 each hold the lock that the other wants",
    ),
    Fault(
        "lost_notification.py",
        ("@culprit|condition", "condition|notif|lock|threading"),
        "rank 2 waits for a condition, and no thread is left that would notify it",
    ),
    Fault(
        "main_process_first.py",
        ("@culprit|tokenize", "busy|cpu|comput|running|python|slow|works|working"),
        "rank 2 is busy with the whole dataset; the others wait in a barrier for it",
    ),
    Fault(
        "metric_on_one_rank.py",
        ("@culprit|log_dict|all_reduce|allreduce", "barrier|all_reduce|allreduce"),
        "rank 2 reduces one metric more; the others are in the barrier after it",
    ),
    Fault(
        "nested_executor.py",
        ("@culprit|future", "future|executor|thread|result"),
        "rank 2 waits for a future whose task waits for another one in the same single thread",
    ),
    Fault(
        "no_shard_for_rank.py",
        ("@culprit|tokens", "loop|busy|cpu|comput|running|python"),
        "rank 2 has no shards and loops without end in tokens(); the others are in all_reduce",
    ),
    Fault(
        "order_of_a_set.py",
        ("@culprit|all_to_all|alltoall", "all_reduce|allreduce"),
        "rank 2 is in all_to_all and the others in all_reduce: their order differs",
    ),
    Fault(
        "pipeline_send_left_out.py",
        ("@culprit|barrier|send", "recv|receive"),
        "rank 3 waits to receive from rank 2, which did not send and is in the barrier",
        culprits=(frozenset({2}), frozenset({2, 3})),
    ),
    Fault(
        "pool_forked_with_lock.py",
        ("@culprit|pool|encode", "pool|worker|child"),
        "rank 2 waits for its pool, whose workers wait for a lock that was held at the fork",
    ),
    Fault(
        "pool_worker_killed.py",
        ("@culprit|pool", "pool|worker|child"),
        "rank 2 waits for the result of a pool, one of whose workers was killed",
    ),
    Fault(
        "prefetch_thread_died.py",
        ("@culprit|queue", "queue"),
        "rank 2 waits for its queue, and the thread that filled it has died of an exception",
    ),
    Fault(
        "progress_bar_decides.py",
        ("@culprit|evaluate|all_gather|allgather", "backward|all_reduce|allreduce|train|gather"),
        "rank 2 alone is in evaluate(); the others train on",
    ),
    Fault(
        "rank_given_twice.py",
        ("@culprit|init_process_group", "rank 1|twice|rendezvous|init_process_group"),
        "the process of rank 2 has called itself rank 1, so that rank 2 never comes",
        culprits=(frozenset({2}), frozenset({1, 2})),
    ),
    Fault(
        "regular_expression.py",
        ("@culprit|is_acronym|GIL", "GIL|regular expression|regex|busy|cpu|comput|running"),
        "rank 2 is busy in a regular expression, holding the GIL; the others are in all_reduce",
    ),
    Fault(
        "request_only_polled.py",
        ("@culprit|is_completed|sleep", "poll|sleep|is_completed|loop|irecv|receive"),
        "rank 2 polls a receive that it never waits for; the others are in the barrier",
    ),
    Fault(
        "retry_never_ends.py",
        ("@culprit|train_batch|attempt|forward", "loop|busy|cpu|comput|running|python|again|retr"),
        "rank 2 tries its batch again without end; the others are in monitored_barrier",
    ),
    Fault(
        "send_nobody_receives.py",
        ("@culprit|send", "send"),
        "rank 2 sends to rank 0, which does not receive but reduces with the others",
    ),
    Fault(
        "stale_lock_file.py",
        ("@culprit|FileBaton|build", "sleep|poll|lock file|exists"),
        "rank 2 waits for a lock file to disappear; the others are in the barrier",
    ),
    Fault(
        "state_gathered_by_one_rank.py",
        ("@culprit|get_state_dict|all_gather|allgather", "barrier|gather"),
        "rank 2 gathers the state alone; the others are in the barrier",
    ),
    Fault(
        "statistics_of_skipped_module.py",
        ("@culprit|all_gather|allgather", "all_reduce|allreduce|reduc|forward"),
        "rank 2 skipped the module whose statistics the others reduce, and is in all_gather",
    ),
    Fault(
        "stopped_by_signal.py",
        ("SIGSTOP|stopped|suspended|paused",),
        "the process of rank 2 is stopped by SIGSTOP",
    ),
    Fault(
        "stops_early.py",
        ("exit|ended|gone|dead|died|no longer|not running|terminated|finished|lost|left",),
        "the process of rank 2 has ended early; the others wait for its key in the store",
    ),
    Fault(
        "tracker_init_hangs.py",
        ("@culprit|init_tracker", "recv|socket|network|connection|server|service"),
        "rank 2 waits for a service to answer; the others are in new_group",
    ),
    Fault(
        "wrong_master_port.py",
        ("@culprit|init_process_group", "port|connect|rendezvous|store|init_process_group"),
        "rank 2 knocks at another port than the one at which rank 0 waits for it",
    ),
)

HEALTHY: Final = (
    Healthy("bursts.py", "all ranks pause together every twenty steps"),
    Healthy(
        "checkpoint_by_rank_0.py",
        "rank 0 goes on writing, and the others wait for it as the program says",
    ),
    Healthy(
        "evaluation_on_rank_0.py",
        "rank 0 goes on evaluating, and the others wait for its result as the program says",
    ),
    Healthy("first_step.py", "all ranks read at the same time"),
    Healthy("garbage_collection.py", "all ranks collect garbage at the same steps"),
    Healthy("long_compile.py", "all ranks compile, and none waits"),
    Healthy("slow_steps.py", "all ranks take their time, and come together after each step"),
    Healthy("uneven_batches.py", "in each step another rank is the last, for at most two seconds"),
)
