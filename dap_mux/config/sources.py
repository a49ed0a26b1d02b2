"""The five sources of options, each read into the same shape."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

from dap_mux.config.options import BY_NAME, OPTIONS
from dap_mux.errors import UsageError
from dap_mux.suggestions import did_you_mean
from dap_mux.user_files import read_regular


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
    {"insecure", "log_dir", "python", "tls_ca", "tls_cert", "tls_key", "token_file"}
)
DEFAULTS = Source(Strength.DEFAULT, {option.name: option.default for option in OPTIONS}, "default")


def from_flags(flags: Mapping[str, object], cwd: Path | None) -> Source:
    """Read the command line's flags; None is a flag not given."""
    given = {name: raw for name, raw in flags.items() if name in BY_NAME and raw is not None}
    return Source(Strength.FLAG, given, "flag", cwd)


def from_variables(environ: Mapping[str, str], cwd: Path | None) -> Source:
    """Read `DAP_MUX_*` variables; an empty one counts as unset."""
    given = {
        option.name: environ[option.variable]
        for option in OPTIONS
        if environ.get(option.variable, "").strip()
    }
    return Source(Strength.VARIABLE, given, "variable", cwd)


def from_launch(launch: Mapping[str, object], cwd: Path | None) -> Source:
    """Read our attributes of a launch or attach request; the others are debugpy's."""
    given = {
        option.name: launch[option.attribute]
        for option in OPTIONS
        if launch.get(option.attribute) is not None
    }
    return Source(Strength.LAUNCH, given, "launch.json", cwd)


def from_project(cwd: Path) -> Source | None:
    """`[tool.dap-mux]` in the nearest pyproject.toml, here or above. Raises UsageError."""
    for folder in (cwd, *cwd.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            tool = _read_toml(path).get("tool", {})
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
    return _from_table(Strength.USER_FILE, _read_toml(path), str(path), path.parent)


def _read_toml(path: Path) -> dict[str, object]:
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
