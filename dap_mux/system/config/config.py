"""The five sources of options, and the values of all, typed and frozen, with their origin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import did_you_mean
from dap_mux.pure.rank_sets import Mesh
from dap_mux.system.config.options import BY_NAME, OPTIONS, Address, Option, Plain
from dap_mux.system.user_files import NoHome, read_regular


class Strength(IntEnum):
    """The precedence of sources."""

    DEFAULT = 0
    USER_FILE = 1
    PROJECT = 2
    LAUNCH = 3
    VARIABLE = 4
    FLAG = 5


class Source(Struct, frozen=True):
    """Raw values by option name. `label` names the source; relative paths are under `base`."""

    strength: Strength
    values: Mapping[str, object]
    label: str
    base: Path | None = None

    def origin(self, name: str) -> str:
        """Name the origin of a value as the user knows it."""
        option = BY_NAME[name]
        own = {
            Strength.FLAG: f"flag {option.flag}",
            Strength.VARIABLE: f"variable {option.variable}",
            Strength.LAUNCH: f"launch.json {option.attribute}",
        }
        return own.get(self.strength, self.label)


# Secrets, trust, and files that we would read or write on behalf of the project.
NOT_FOR_PROJECTS = frozenset(
    "against catch_unequal insecure log_dir python show_secrets tls_ca tls_cert tls_key "
    "token_file".split()
)
DEFAULTS = Source(Strength.DEFAULT, {option.name: option.default for option in OPTIONS}, "default")


def from_flags(flags: Mapping[str, object], cwd: Path | None) -> Source:
    """Read the command line's flags; None is a flag not given."""
    return _given(Strength.FLAG, lambda option: flags.get(option.name), cwd)


def from_variables(environ: Mapping[str, str], cwd: Path | None) -> Source:
    """Read `DAP_MUX_*` variables; an empty one counts as unset."""
    given = {name: text for name, text in environ.items() if text.strip()}
    return _given(Strength.VARIABLE, lambda option: given.get(option.variable), cwd)


def from_launch(launch: Mapping[str, object], cwd: Path | None) -> Source:
    """Read our attributes of a launch or attach request; the others are debugpy's."""
    return _given(Strength.LAUNCH, lambda option: launch.get(option.attribute), cwd)


def _given(strength: Strength, raw: Callable[[Option], object], cwd: Path | None) -> Source:
    values = {option.name: raw(option) for option in OPTIONS}
    given = {name: value for name, value in values.items() if value is not None}
    return Source(strength, given, strength.name.lower(), cwd)


def from_project(cwd: Path) -> Source | None:
    """`[tool.dap-mux]` in the nearest pyproject.toml, here or above. Raises UsageError."""
    for folder in (cwd, *cwd.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            tool = read_toml(path).get("tool", {})
            table = tool.get("dap-mux", {}) if isinstance(tool, dict) else {}
            source = _from_table(Strength.PROJECT, table, f"{path} [tool.dap-mux]", folder)
            _check_project(source)
            return source
    return None


def _check_project(source: Source) -> None:
    """Refuse options with which a project could open this machine, or choose its secret."""
    for name in sorted(NOT_FOR_PROJECTS & source.values.keys()):
        option = BY_NAME[name]
        raise UsageError(
            f"{source.label}: {name!r} cannot be set by a project; "
            f"use {option.flag}, {option.variable} or your own config file"
        )


def from_user_file(environ: Mapping[str, str], home: Path) -> Source | None:
    """`dap-mux/config.toml` in the user's configuration folder. Raises UsageError."""
    # By the XDG specification a relative path is ignored.
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    path = (given if given.is_absolute() else home / ".config") / "dap-mux" / "config.toml"
    if not path.is_file():
        return None
    return _from_table(Strength.USER_FILE, read_toml(path), str(path), path.parent)


def read_toml(path: Path) -> dict[str, object]:
    """Return what is in a file. Raises UsageError."""
    # Here, because most folders have no such file, and every command reads its options.
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415

    try:
        document: dict[str, object] = tomllib.loads(read_regular(path))
    except RecursionError:
        raise UsageError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return document


def _from_table(strength: Strength, table: object, label: str, base: Path) -> Source:
    if not isinstance(table, dict):
        raise UsageError(f"{label} must be a table of options")
    values = {str(key).replace("-", "_"): raw for key, raw in table.items()}
    for name in values:
        if name not in BY_NAME:
            raise UsageError(f"{label}: there is no option {name!r}; {did_you_mean(name, BY_NAME)}")
    return Source(strength, values, label, base)


# The values of all options.

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Row(Struct, frozen=True):
    """One line of `dap-mux config show`."""

    name: str
    value: Plain
    origin: str


class Config(Struct, frozen=True):
    """Times are in seconds, sizes in bytes.

    `log_dir` None is a new temporary folder, `mesh` None a plain row of ranks.
    """

    listen: Address
    base_port: int
    dial_listen: Address
    python: Path | None
    mesh: Mesh | None
    log_dir: Path | None
    verbosity: int
    log: Mapping[str, int] | None
    wait: bool
    words: Literal["pdb", "monarch"]
    view: Literal["auto", "ranks", "classes"]
    scope: Literal["auto", "rank", "class", "all"]
    threads: Literal["auto", "main", "user", "all"]
    classes_above: int
    values_across_ranks: Literal["off", "differing", "all"]
    settle: float
    step_grace: float
    request_timeout: float
    release_after: float
    max_message: int
    token_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    insecure: bool
    catch_nan: bool
    locate: bool
    catch_diverged: bool
    catch_unequal: str | None
    against: Path | None
    show_secrets: bool
    origins: Mapping[str, Source]

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object] = NOTHING,
        environ: Mapping[str, str] = NOTHING,
        launch: Mapping[str, object] = NOTHING,
        cwd: Path | None = None,
        home: Path | None = None,
    ) -> Config:
        """Take each option from its strongest source. Without `cwd` and `home` no file is read.

        Raises UsageError that names the option, its value, its origin and what is allowed.
        """
        places = [
            DEFAULTS,
            from_user_file(environ, home) if home else None,
            from_project(cwd) if cwd else None,
            from_launch(launch, cwd),
            from_variables(environ, cwd),
            from_flags(flags, cwd),
        ]
        winners = _winners(place for place in places if place)
        values: dict[str, Any] = {name: _read(name, place) for name, place in winners.items()}
        return cls(**values, origins=winners)

    def with_launch(self, launch: Mapping[str, object], cwd: Path | None = None) -> Config:
        """Add the attributes of an editor's attach or launch request, unless overridden."""
        place = from_launch(launch, cwd)
        better = {
            name: place for name in place.values if self.origins[name].strength <= Strength.LAUNCH
        }
        values: dict[str, Any] = {name: _read(name, place) for name in better}
        return replace(self, **values, origins={**self.origins, **better})

    def explain(self) -> list[Row]:
        """Return each option's value, as a string, number or boolean, and its origin."""
        return [
            Row(
                option.name,
                _show(option, getattr(self, option.name)),
                self.origins[option.name].origin(option.name),
            )
            for option in OPTIONS
        ]


def _winners(places: Iterable[Source]) -> dict[str, Source]:
    """Return the strongest source of each option."""
    return {
        name: place
        for place in sorted(places, key=lambda place: place.strength)
        for name in place.values
    }


def _read(name: str, place: Source) -> object:
    raw, option = place.values[name], BY_NAME[name]
    if place.strength is Strength.DEFAULT:
        return raw
    try:
        value: object = option.kind.read(raw)
    except NoHome as error:
        raise UsageError(f"{name} = {raw!r} ({place.origin(name)}): {error}") from None
    except ValueError:
        allowed = f"allowed: {option.kind.allowed}"
        raise UsageError(f"{name} = {raw!r} ({place.origin(name)}): {allowed}") from None
    return place.base / value if place.base and isinstance(value, Path) else value


def _show(option: Option, value: object) -> Plain:
    return None if value is None else option.kind.show(value)


# The settings that each command passes to the session it starts.


class JobOptions(Struct, frozen=True):
    """Options shared by every job that we start and serve."""

    config: Config
    command: tuple[str, ...]
    dial: bool = False
    """Ranks connect to the session instead of listening."""
    hold: str | None = None
    """`DAP_MUX_POST_MORTEM` of the ranks, unless the environment has it; None: `debugged`."""
    end_json: Path | None = None
    """A file for the end of a job that has failed."""
    why_after: float | None = None
    """How often (s) to look whether the job hangs, while nobody watches; None: never."""
    comm: str = ""
    """`DAP_MUX_COMM` of the ranks, unless the environment has it; "": it is not set."""
    comm_file: str = ""
    """`DAP_MUX_COMM_FILE`, likewise."""
    comm_equal: tuple[str, ...] = ()
    """Expressions, whose values the trace has after each step."""
    comm_step: str = ""
    """`FILE:LINE`, where steps end."""
    variables: Mapping[str, str] = {}
    """Others of the ranks, unless the environment has them."""


class RunOptions(JobOptions, frozen=True, kw_only=True):
    """Start `world_size` local ranks of `command`: a script and its arguments, or `-m`, a module
    and its arguments.
    """

    world_size: int
    only: tuple[int, ...] = ()
    """The ranks that are started; (): all."""


class LaunchOptions(JobOptions, frozen=True, kw_only=True):
    """Start a launcher, whose command line is as it was typed, and debug the ranks it starts.

    Ranks that `dial` do so to `config.dial_listen`.
    """

    name: str = ""
    """The job, as messages to the user name it; "" names the launcher."""
    output_json: Path | None = None
    """A file for what ranks have printed, of which they keep more then: pairs of rank and text."""


class AttachOptions(Struct, frozen=True):
    """Attach to ranks that listen at `endpoints`, as the user wrote them (`host:5678-5681`)."""

    config: Config
    endpoints: tuple[str, ...]
