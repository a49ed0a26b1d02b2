"""A module starts a thread while it is being imported, and the thread imports that module.

https://github.com/python/cpython/issues/125037: the program hangs forever where a module joins a
thread in its body, and the thread waits for the import of this module to finish.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from pathlib import Path

import torch.distributed as dist


def registry() -> object:
    return importlib.import_module("import_in_thread")


def main() -> None:
    dist.init_process_group("gloo")
    sys.path.insert(0, str(Path(__file__).parent))
    registry()  # culprit: import
    dist.barrier()


if __name__ == "__main__":
    main()
elif os.environ.get("RANK") == "2":
    # The body of the module, as a plugin of one node has it.
    registering = threading.Thread(target=registry)
    registering.start()
    registering.join()  # culprit
