"""A child is forked while a thread holds the lock of a log handler, and logs.

https://github.com/vmware-archive/runtimes/issues/94: a lock of the output was held by another
thread when a process was forked; in the child nobody releases it, and the parent waits for it.
"""

from __future__ import annotations

import logging
import os
import threading

import torch.distributed as dist

LOG = logging.getLogger("convert")
HELD, FORKED = threading.Event(), threading.Event()  # the moment in which it goes wrong


class Shipping(logging.Handler):
    shipping = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        with self.shipping:  # culprit: child
            if "slow" in record.getMessage():
                HELD.set()
                FORKED.wait()


def main() -> None:
    LOG.addHandler(Shipping())
    dist.init_process_group("gloo")
    if dist.get_rank() == 2:
        os.register_at_fork(after_in_parent=FORKED.set)
        threading.Thread(target=LOG.warning, args=("slow line",)).start()
        HELD.wait()
    child = os.fork()
    if child == 0:
        LOG.warning("converting")
        os._exit(0)
    os.waitpid(child, 0)  # culprit
    dist.barrier()


main()
