"""Launchers made of a few lines of Python, which treat their ranks as the real ones do."""

from __future__ import annotations

# `python launch.py N SCRIPT ARGS` starts ranks by their environment. The first failure's code is
# its own, and ends the others; a rank that exits with 75 is started again, as by torchrun.
LAUNCH = """\
import os
import subprocess
import sys
import time

size, again = int(sys.argv[1]), 75
start = lambda rank: subprocess.Popen(
    [sys.executable, *sys.argv[2:]],
    env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)},
)
subprocess.run([sys.executable, "-c", "print('a helper')"], env={**os.environ, "RANK": "0"})
ranks = {rank: start(rank) for rank in range(size)}
code = 0
while ranks and not code:
    for rank, process in list(ranks.items()):
        ended = process.poll()
        if ended == again:
            ranks[rank] = start(rank)
        elif ended is not None:
            del ranks[rank]
            code = code or ended
    time.sleep(0.01)
for process in ranks.values():
    process.terminate()
for process in ranks.values():
    process.wait()
sys.exit(code if code >= 0 else 128 - code)
"""

# A script that starts its own workers, each of which says itself which rank it is.
SPAWNS = """\
import multiprocessing
import os
import sys


def work(rank, size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["RANK"] = str(rank)
    os.environ["WORLD_SIZE"] = str(size)
    square = rank * rank  # square
    sys.stdout.write(f"worker {rank} {square}\\n")  # in one go


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work, args=(rank, 3)) for rank in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(max(worker.exitcode for worker in workers))
"""

# A rank with children of every kind, each of which inherits its variables.
CHILDREN = """\
import multiprocessing
import os
import subprocess
import sys


def square(number):
    return number * number  # in a child


if __name__ == "__main__":
    rank = os.environ["RANK"]
    for how in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(2) as pool:
            squares = pool.map(square, range(3))
        sys.stdout.write(f"rank {rank} {how} {squares}\\n")
    sys.stdout.flush()
    subprocess.run([sys.executable, "child.py"], check=True)
    subprocess.run([sys.executable, "-m", "child"], check=True, stdout=subprocess.DEVNULL)
    done = True  # after
"""
