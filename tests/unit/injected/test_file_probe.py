"""What is evaluated in a rank about its files: run here as a frameless evaluate runs it there."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dap_mux.pure import remote as probe
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.remote import (
    MAX_COMPARED_BYTES,
    Content,
    Found,
    content,
    found,
    look_at,
    read,
)
from dap_mux.rank.injected import source_of

SOURCE = source_of("file_probe")


def evaluated(expression: str) -> Any:
    """The value, once it is sure that no name was left behind."""
    names: dict[str, Any] = {}
    value = eval(expression, names)
    assert set(names) == {"__builtins__"}
    return value


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def look(path: Path, wanted: str = "") -> Found:
    return found(evaluated(look_at(SOURCE, str(path), wanted)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; nothing that the tests were started with counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [""])
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    return tmp_path


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, path: str | Path) -> None:
    module = ModuleType(name)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, module)


def test_a_file_by_its_content(here: Path) -> None:
    path = here / 'it\'s a \\ "file".py'
    path.write_text("x = 1\n")
    assert look(path) == Found(digest("x = 1\n"))
    assert look(path, digest("x = 1\n")) == Found(digest("x = 1\n"))


def test_what_is_no_file(here: Path) -> None:
    assert look(here / "none.py") == Found("")
    assert look(here) == Found("")
    assert look(Path("nul\0byte")) == Found("")


def test_what_is_no_regular_file_is_not_opened(here: Path) -> None:
    os.mkfifo(here / "waits.py")
    for path in (here / "waits.py", Path("/dev/zero")):
        assert content(evaluated(read(SOURCE, str(path)))).problem == "it is no regular file"


def test_of_a_large_file_the_size_must_do(here: Path) -> None:
    with (here / "large.py").open("wb") as file:
        file.truncate(MAX_COMPARED_BYTES + 1)
    assert look(here / "large.py") == Found(f"size:{MAX_COMPARED_BYTES + 1}")
    assert content(evaluated(read(SOURCE, str(here / "large.py")))).problem.startswith(
        "it is larger than"
    )


def test_files_of_that_name_that_the_program_has(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one with the longest common end first; what it was started with is marked."""
    for folder in ("other", "run/pkg"):
        (here / folder).mkdir(parents=True)
        (here / folder / "train.py").write_text(folder)
    loaded(monkeypatch, "__main__", "other/train.py")
    loaded(monkeypatch, "pkg.train", here / "run/pkg/train.py")
    loaded(monkeypatch, "elsewhere", here / "run/pkg/model.py")
    near = [
        (str(here / "run/pkg/train.py"), digest("run/pkg"), False),
        (str(here / "other/train.py"), digest("other"), True),
    ]
    assert look(Path("/home/me/pkg/train.py")) == Found("", near)
    stale = here / "train.py"
    stale.write_text("stale")
    assert look(stale, digest("new")).near[0][1:] == (digest("other"), True)
    assert look(stale, digest("stale")).near == []
    assert look(stale).near == []


def test_modules_that_object_to_being_looked_at(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    loaded(monkeypatch, "odd", here)
    monkeypatch.setitem(sys.modules, "nothing", None)
    assert look(here / "train.py") == Found("")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("s = 'ü'\n".encode(), "s = 'ü'\n"),
        ("# coding: latin-1\ns = 'ü'\n".encode("latin-1"), "# coding: latin-1\ns = 'ü'\n"),
        (b"s = '\xff'\n", "s = '\ufffd'\n"),
        (b"", ""),
    ],
    ids=["utf-8", "declared", "neither", "empty"],
)
def test_a_text_is_read_as_python_does(here: Path, data: bytes, text: str) -> None:
    (here / "f.py").write_bytes(data)
    assert content(evaluated(read(SOURCE, str(here / "f.py")))) == Content(text)


def test_a_text_that_is_not_there(here: Path) -> None:
    assert "No such file" in content(evaluated(read(SOURCE, str(here / "f.py")))).problem


def test_where_it_runs(here: Path) -> None:
    assert evaluated(probe.WORKING_FOLDER) == str(here)


@pytest.mark.parametrize(
    "nonsense", ["", "[1]", '{"digest": 7}', '{"near": [["a"]]}', "None", "\ud800"]
)
def test_nonsense_is_refused(nonsense: str) -> None:
    with pytest.raises(PeerFault):
        found(nonsense)
