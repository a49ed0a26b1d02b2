"""Values and names that are found without running the program's code."""

from __future__ import annotations

import ast
import functools
import math
import socket
import sys
import threading
import time
from typing import Any

import pytest

from dap_mux.rank.injected.evidence.static_values import MISSING, arguments_of, called, value_of

ranks = {"left": 3, 4: "four"}
places = [5, 6]


class Slotted:
    """With attributes of every kind; those that are computed must not be."""

    __slots__ = ("__private", "kept")

    def __init__(self) -> None:
        self.kept = 7
        self.__private = 8

    @property
    def computed(self) -> int:
        raise AssertionError("code of the program runs")

    @functools.cached_property
    def cached(self) -> int:
        raise AssertionError("code of the program runs")

    def frame(self) -> Any:
        """Return a frame of this class."""
        assert self.__private
        return sys._getframe()


def node(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'text'", "text"),
        ("-(-5)", 5),
        ("self.kept", 7),
        ("self.__private", 8),
        ("self.computed", MISSING),
        ("self.cached", MISSING),
        ("self.absent", MISSING),
        ("absent", MISSING),
        ("self.frame()", MISSING),
        ("time.sleep", time.sleep),
        ("len", len),
        ("self.kept + 1", 8),
        ("(self.kept - 8) % 4", 3),
        ("self.kept % 0", MISSING),
        ("self.kept + 'text'", MISSING),
        ("self.kept ** 2", MISSING),
        ("self.kept if self.kept == 7 else 1", 7),
        ("self.kept if self.kept != 7 else 1", 1),
        ("1 if self.kept else 2", MISSING),
        ("1 < self.kept < 9", MISSING),
        ("self.computed + 1", MISSING),
    ],
)
def test_a_value(text: str, value: object) -> None:
    assert value_of(node(text), Slotted().frame()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ranks['left']", 3),
        ("places[-1]", 6),
        ("places[2]", MISSING),
        ("ranks[4]", MISSING),
        ("places['left']", MISSING),
    ],
)
def test_an_item(text: str, value: object) -> None:
    assert value_of(node(text), sys._getframe()) == value


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("time.sleep", "time.sleep"),
        ("lock.acquire", "_thread.lock.acquire"),
        ("acquire", "_thread.lock.acquire"),
        ("sock.recv", "_socket.socket.recv"),
        ("socket.socket.recv", "_socket.socket.recv"),
        ("sock.makefile", "socket.socket.makefile"),
        ("dict.fromkeys", "builtins.dict.fromkeys"),
        ("Slotted", f"{__name__}.Slotted"),
        ("node", f"{__name__}.node"),
        ("absent.acquire", ""),
    ],
)
def test_the_name_of_what_is_called(text: str, name: str) -> None:
    lock = threading.Lock()
    acquire = lock.acquire
    with socket.socket() as sock:
        assert called(node(text), sys._getframe())[0] == name
        assert sock.fileno() >= 0
    assert acquire == lock.acquire


def test_what_a_method_belongs_to() -> None:
    lock = threading.Lock()
    acquire = lock.acquire
    for text in ("lock.acquire", "acquire"):
        assert called(node(text), sys._getframe())[1] is lock
    assert called(node("lock"), sys._getframe(), "__enter__") == ("_thread.lock.__enter__", lock)
    assert called(node("time.sleep"), sys._getframe())[1] is MISSING
    assert acquire == lock.acquire


def test_only_short_and_finite_arguments_are_told() -> None:
    long, endless, big = "x" * 101, math.inf, 2**63
    call = node("f(1, long, *places, 2, tag='a', size=endless, last=None, other=big, **ranks)")
    assert arguments_of(call, sys._getframe()) == {"0": 1, "tag": "a", "last": None}
    assert (len(long), endless > big) == (101, True)
