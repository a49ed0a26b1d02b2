"""Every rank sends its border first: once a finer grid makes borders large, all wait in `send`.

A heat equation on a plane that is cut into strips, whose grid is refined as it gets interesting.
"""

from __future__ import annotations

import math
import time

from mini_mpi import Comm

ROWS = 6
REFINE_AT = {4: 4096, 8: 131072}  # step: columns
STEPS = 4000
ALPHA = 0.1

Row = list[float]


def refined(row: Row, columns: int) -> Row:
    """The same values on a finer grid."""
    factor = columns // len(row)
    return [value for value in row for _ in range(factor)]


def exchange(comm: Comm, strip: list[Row]) -> tuple[Row, Row]:
    """The rows just above and below this strip; the plane is closed to a ring."""
    above, below = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    comm.send(strip[0], above, "up")  # BUG
    comm.send(strip[-1], below, "down")  # BUG
    return comm.recv(above, "down"), comm.recv(below, "up")


def relaxed(strip: list[Row], top: Row, bottom: Row) -> list[Row]:
    rows = [top, *strip, bottom]
    return [
        [
            here + ALPHA * (north + south - 2 * here)
            for north, here, south in zip(rows[i - 1], rows[i], rows[i + 1], strict=True)
        ]
        for i in range(1, len(rows) - 1)
    ]


def main() -> None:
    comm = Comm()
    columns = 256
    strip = [
        [math.sin(comm.rank + row / ROWS + column / columns) for column in range(columns)]
        for row in range(ROWS)
    ]
    for step in range(STEPS):
        if step in REFINE_AT:
            columns = REFINE_AT[step]
            strip = [refined(row, columns) for row in strip]
        top, bottom = exchange(comm, strip)
        strip = relaxed(strip, top, bottom)
        heat = comm.allreduce([sum(map(sum, strip)) / columns])[0]
        if comm.rank == 0:
            print(f"step {step}: {columns} columns, heat {heat:.6f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
