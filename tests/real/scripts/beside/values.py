"""Values of the kinds that a debugger shows in different ways."""

from __future__ import annotations


class Point:
    """An object with attributes, a property and a method."""

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y

    @property
    def size(self) -> int:
        return self.x * self.x + self.y * self.y

    @property
    def broken(self) -> int:
        raise RuntimeError("no such thing")

    def __repr__(self) -> str:
        return f"Point({self.x}, {self.y})"


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("not to be shown")


def twice(number: int) -> int:
    return number * 2  # twice


def show(point: Point) -> None:
    number, negative, real, flag, nothing = 255, -1, 1.5, True, None
    text, raw, wörter = "text with 'quotes' and \n a line", b"\x00\xff", "äöü"  # noqa: PLC2401 - a name that is not ASCII
    items, pair, unique = list(range(150)), (1, "two"), {3}
    table = {"key": [1, {"deep": "value"}], 7: Point(3, 4), (1, 2): None}
    long = "x" * 5000
    odd = Unprintable()
    print(len(items), point.x)  # here
    number = twice(number)  # call
    print(number, negative, real, flag, nothing, text, raw, wörter, pair, unique, table, len(long))
    print(type(odd).__name__)


show(Point(1, 2))
