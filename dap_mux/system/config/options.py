"""The table of options, and their kinds: how each is read from text, TOML or JSON, and shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import Mesh
from dap_mux.system.user_files import expand_home

T = TypeVar("T")
Plain = str | int | float | bool | None

_COMPONENT = r"client|console|dial|engine|rank(?:\.[0-9]+)?|session"
_LEVELS = {"error": 40, "warning": 30, "info": 20, "debug": 10}  # as in `logging`
_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001}
_SIZES = {"": 1, "KiB": 1024, "MiB": 1024**2}
_TRUTH_VALUES = {"1": True, "true": True, "yes": True, "on": True}
_TRUTH_VALUES |= {"0": False, "false": False, "no": False, "off": False}


class Address(NamedTuple):
    """Where to listen; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `PORT`, `HOST:PORT` or `[IPv6]:PORT`; loopback without a host. Raises ValueError."""
        match = re.fullmatch(r"(?:(\[[0-9a-fA-F:.]+\]|[^:\s\[\]/]*):)?([0-9]{1,5})", text.strip())
        if match is None or int(match[2]) > 65535:
            raise ValueError(f"{text!r} is not an address")
        return cls((match[1] or "127.0.0.1").strip("[]"), int(match[2]))


class Kind(Struct, Generic[T], frozen=True):
    """`read` raises ValueError unless `allowed`; `show` returns a string, number or boolean."""

    allowed: str
    metavar: str
    read: Callable[[object], T]
    show: Callable[[T], Plain]


def _text(raw: object) -> str:
    """Return a string or number as text. Raises ValueError for anything else."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError(raw)
    return str(raw).strip()


def _plain(value: Plain) -> Plain:
    return value


def _with_unit(raw: object, units: dict[str, T]) -> tuple[float, T]:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", _text(raw))
    if match is None or match[2] not in units:
        raise ValueError(raw)
    return float(match[1]), units[match[2]]


def count(lowest: int, highest: int, what: str = "a whole number") -> Kind[int]:
    """Whole numbers within bounds, both included."""

    def read(raw: object) -> int:
        value = int(_text(raw))
        if not lowest <= value <= highest:
            raise ValueError(raw)
        return value

    return Kind(f"{what} from {lowest} to {highest}", "N", read, _plain)


def choice(*words: str) -> Kind[str]:
    """One of several names."""

    def read(raw: object) -> str:
        if raw not in words:
            raise ValueError(raw)
        return str(raw)

    return Kind(f"one of {', '.join(words)}", "{" + ",".join(words) + "}", read, _plain)


def seconds(highest: float) -> Kind[float]:
    """A time: a number of seconds, or text with a unit (`50ms`, `0.6s`)."""

    def read(raw: object) -> float:
        number, unit = _with_unit(raw, _UNITS)
        if number * unit > highest:
            raise ValueError(raw)
        return number * unit

    return Kind(f"seconds from 0 to {highest:g}, or like 50ms", "SECONDS", read, _plain)


def size(lowest: int, highest: int) -> Kind[int]:
    """A number of bytes, or text with a unit (`16MiB`)."""

    def read(raw: object) -> int:
        number, unit = _with_unit(raw, _SIZES)
        if not lowest <= number * unit <= highest:
            raise ValueError(raw)
        return int(number * unit)

    bounds = f"from {lowest // 1024} KiB to {highest // 1024**2} MiB"
    return Kind(f"bytes {bounds}, or like 16MiB", "BYTES", read, _plain)


def _read_truth(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    try:
        return _TRUTH_VALUES[_text(raw).lower()]
    except KeyError:
        raise ValueError(raw) from None


def _read_mesh(raw: object) -> Mesh:
    try:
        return Mesh.parse(_text(raw))
    except UsageError as error:
        raise ValueError(raw) from error


def _read_levels(raw: object) -> dict[str, int]:
    """Read `rank.3=debug,client=info`, components of the log with their levels."""
    levels = {}
    for each in _text(raw).split(","):
        component, _, level = each.strip().partition("=")
        if not re.fullmatch(_COMPONENT, component) or level not in _LEVELS:
            raise ValueError(raw)
        levels[component] = _LEVELS[level]
    return levels


def _show_levels(levels: dict[str, int]) -> str:
    words = {level: word for word, level in _LEVELS.items()}
    return ",".join(f"{component}={words[level]}" for component, level in levels.items())


def _read_path(raw: object) -> Path:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(raw)
    return expand_home(raw)


def _read_expression(raw: object) -> str:
    try:
        compile(_text(raw), "", "eval")
    except SyntaxError as error:
        raise ValueError(raw) from error
    return _text(raw)


PORT = count(1, 65535, "a port")
TRUTH = Kind("true or false", "", _read_truth, _plain)
ADDRESS = Kind(
    "PORT, HOST:PORT or [IPv6]:PORT",
    "[HOST:]PORT",
    lambda raw: Address.parse(_text(raw)),
    str,
)
MESH = Kind("dimensions and sizes like dp=2,tp=4", "DIMS", _read_mesh, str)
LEVELS = Kind(
    "client, console, dial, engine, rank, rank.N or session, with error, warning, info or debug",
    "COMPONENT=LEVEL,...",
    _read_levels,
    _show_levels,
)
FOLDER = Kind("a folder", "FOLDER", _read_path, str)
PROGRAM = Kind("a program", "PROGRAM", _read_path, str)
EXPRESSION = Kind("an expression of Python", "EXPR", _read_expression, _plain)
FILE = Kind("a file", "FILE", _read_path, str)


# The table.

ALL = ("run", "attach", "adapter")
RUN = ("run",)
JOIN = ("list", "console", "cast", "compare", "stacks", "why", "lsp", "mcp", "doctor")


class Option(Struct, frozen=True):
    """`commands` are those that take the flag.

    Its other names follow from `name`, unless `own_flag` or `own_attribute` say otherwise. The key
    in a TOML file is `name`, with hyphens or underscores.
    """

    name: str
    kind: Kind[Any]
    default: object
    commands: tuple[str, ...]
    help: str
    own_flag: str = ""
    own_attribute: str = ""

    @property
    def flag(self) -> str:
        """`--log-dir`."""
        return self.own_flag or f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """`DAP_MUX_LOG_DIR`."""
        return f"DAP_MUX_{self.name.upper()}"

    @property
    def attribute(self) -> str:
        """The key in launch.json: `logDir`."""
        first, *rest = self.name.split("_")
        return self.own_attribute or first + "".join(word.capitalize() for word in rest)


# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("listen", ADDRESS, Address("127.0.0.1", 5677),
           ALL, "where editors connect; port 0 takes a free one",
           own_attribute="listenAddress"),  # debugpy has a `listen` of its own
    Option("base_port", PORT, 5678,
           RUN, "rank 0's debugpy port; rank N takes this + N, or the next free one"),
    Option("dial_listen", ADDRESS, Address("127.0.0.1", 5676),
           ("attach", "run"),
           "where ranks that dial out connect (attach dial:N, run --dial -- LAUNCHER)"),
    Option("python", PROGRAM, None,
           ALL, "the Python of the job: of ranks that run -n starts, and for dask: and ray:",
           own_attribute="clusterPython"),  # debugpy has a `python` of its own
    Option("words", choice("pdb", "monarch"), "pdb",
           ("run", "console"), "what c, l and attach mean in the console"),
    Option("mesh", MESH, None,
           ALL, "how ranks are laid out, the last dimension varying fastest"),
    Option("log_dir", FOLDER, None,
           ALL, "where log files go, one for each rank; a new temporary folder by default"),
    Option("verbosity", count(0, 3), 0,
           ALL, "more messages: -v, -vv or -vvv", own_flag="-v"),
    Option("log", LEVELS, None,
           ALL, "the level of some components' messages: rank.3=debug,client=info"),
    Option("wait", TRUTH, True,
           RUN, "ranks wait for a debugger before their first line"),
    Option("view", choice("auto", "ranks", "classes"), "auto",
           ALL, "a thread for each rank, or for each class of ranks at the same place"),
    Option("scope", choice("auto", "rank", "class", "all"), "auto",
           ALL, "what a step, continue or pause acts on"),
    Option("threads", choice("auto", "main", "user", "all"), "auto",
           ALL, "the rows of a rank: one, one for each thread in user code, or all Python threads"),
    Option("classes_above", count(1, 1_000_000), 64,
           ALL, "with view auto, show classes if there are more ranks than this"),
    Option("values_across_ranks", choice("off", "differing", "all"), "differing",
           ALL, "which variables show how their values in other ranks differ"),
    Option("settle", seconds(10), 0.05,
           ALL, "stops of several ranks within this time are one event"),
    Option("step_grace", seconds(60), 0.6,
           ALL, "how long a class step waits for its slowest rank"),
    Option("request_timeout", seconds(3600), 5.0,
           ALL, "how long a rank may take to reply; evaluate requests are not limited"),
    Option("release_after", seconds(3600), 12.0,
           ALL, "a rank that hears nothing from a stopped session for so long runs on; 0: never"),
    Option("max_message", size(64 * 1024, 1024**3), 16 * 1024**2,
           ALL, "the largest message accepted from an editor or a rank"),
    Option("token_file", FILE, None,
           (*ALL, *JOIN), "file with the session's token; a session creates it if it is missing"),
    Option("tls_cert", FILE, None,
           ALL, "the certificate (PEM) for editors that connect by TLS"),
    Option("tls_key", FILE, None,
           ALL, "its private key, if that is in a separate file"),
    Option("tls_ca", FILE, None,
           JOIN, "connect by TLS; the certificate (PEM) that verifies the session's"),
    Option("insecure", TRUTH, False,
           (*ALL, *JOIN), "allow addresses beyond loopback with only a token, without TLS"),
    Option("catch_nan", TRUTH, False,
           ALL, "ranks stop before they send NaN or infinity, or step to them"),
    Option("locate", TRUTH, False,
           ALL, "the same, and each operation is looked at: the line that made them is named"),
    Option("catch_diverged", TRUTH, False,
           ALL, "ranks stop after a step in which parameters differ that they keep equal"),
    Option("catch_unequal", EXPRESSION, None,
           ALL, "the same, or in which this has other values, in the function that ends the step"),
    Option("against", FOLDER, None,
           ALL, "the same, or from those of a run that `run --comm hash --comm-file` has recorded"),
    Option("show_secrets", TRUTH, False,
           ("mcp",), "show a coding agent secrets in values, output and sources"),
)
# fmt: on
BY_NAME = {option.name: option for option in OPTIONS}


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a table of options, as in `config.toml`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dap-mux: [tool.dap-mux] of pyproject.toml, or config.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {option.name.replace("_", "-"): _schema_of(option) for option in OPTIONS},
    }


def _schema_of(option: Option) -> dict[str, Any]:
    described: dict[str, Any] = {"description": f"{option.help}; allowed: {option.kind.allowed}"}
    if option.default is not None:
        described["default"] = option.kind.show(option.default)
    if option.kind.metavar.startswith("{"):
        return {**described, "enum": option.kind.metavar.strip("{}").split(",")}
    if isinstance(option.default, bool):
        return {**described, "type": "boolean"}
    return {**described, "type": ["string", "number"]}
