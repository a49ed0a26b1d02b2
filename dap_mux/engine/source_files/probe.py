"""What is evaluated in a rank to learn about its files, and how its answers are read.

Each is one expression for a frameless evaluate, which works while the rank runs and before it is
configured (FACTS, debugpy 10). Those share pydevd's own globals: the text below runs in a
dictionary of its own, so no name stays behind. Nothing in it may raise.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dap_mux.protocol.rank_messages import read_text

LARGEST: Final = 4 * 1024 * 1024  # bytes; of a larger file only the size is compared
CANDIDATES: Final = 8  # files of the same name that a rank tells of

WHERE: Final = "__import__('os').getcwd()"

_LOOK: Final = """
def digest(path):
    import hashlib, os, stat
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            return ''
        if about.st_size > LARGEST:
            return 'size:%d' % about.st_size
        with open(path, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ''

def near(path):
    import os, sys
    name = path.replace(chr(92), '/').rsplit('/', 1)[-1]
    main = getattr(sys.modules.get('__main__'), '__dict__', {}).get('__file__')
    files = [main, *sys.argv[:1]]
    files += [getattr(m, '__dict__', {}).get('__file__') for m in list(sys.modules.values())]
    named = [f for f in files if isinstance(f, str) and os.path.basename(f) == name]
    others = sorted({os.path.abspath(f) for f in named} - {path}, key=tail(path))[:CANDIDATES]
    started = [os.path.abspath(f) for f in [main, *sys.argv[:1]] if isinstance(f, str)]
    return [[f, digest(f), f in started] for f in others]

def tail(path):
    parts = path.replace(chr(92), '/').split('/')[::-1]
    def shared(other):
        others = other.replace(chr(92), '/').split('/')[::-1]
        same = [a == b for a, b in zip(parts, others)] + [False]
        return -same.index(False), other
    return shared

def answer(path, wanted):
    import json
    found = digest(path)
    same = found and wanted in ('', found)
    return json.dumps({'digest': found, 'near': [] if same else near(path)})
"""

_READ: Final = """
def answer(path):
    import json, linecache, os, tokenize
    try:
        if os.stat(path).st_size > LARGEST:
            return json.dumps({'problem': 'it is larger than %d bytes' % LARGEST})
        try:
            with tokenize.open(path) as file:
                return json.dumps({'text': file.read()})
        except (SyntaxError, UnicodeDecodeError):
            with open(path, errors='replace') as file:
                return json.dumps({'text': file.read()})
    except (OSError, ValueError) as error:
        lines = linecache.getlines(path)
        return json.dumps({'text': ''.join(lines)} if lines else {'problem': str(error)})
"""


class Found(msgspec.Struct, frozen=True):
    """What a rank has at a path: a digest, "" for no such file.

    `near`: files of that name which it has loaded, with their digests, and whether it was
    started with them; only where the file is missing or not the one that was wanted.
    """

    digest: str = ""
    near: list[tuple[str, str, bool]] = []


class Content(msgspec.Struct, frozen=True):
    """A file's text, or why there is none."""

    text: str | None = None
    problem: str = "it could not be read"


def look_at(path: str, wanted: str) -> str:
    """Return the expression whose value `found` reads; `wanted` is a digest, "" for any."""
    return _call(_LOOK, path, wanted)


def read(path: str) -> str:
    """Return the expression whose value `content` reads."""
    return _call(_READ, path)


def _call(source: str, *arguments: str) -> str:
    scope = f"{{'LARGEST': {LARGEST}, 'CANDIDATES': {CANDIDATES}}}"
    words = ", ".join(map(repr, arguments))
    return f"(lambda s: (exec({source!r}, s), s['answer']({words}))[1])({scope})"


def found(result: str) -> Found:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Found)


def content(result: str) -> Content:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Content)
