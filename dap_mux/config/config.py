"""The values of all options, typed and frozen, and the origin of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.config.options import BY_NAME, OPTIONS, Option
from dap_mux.config.sources import (
    DEFAULTS,
    Source,
    Strength,
    from_flags,
    from_launch,
    from_project,
    from_user_file,
    from_variables,
)
from dap_mux.config.values import Address, Plain
from dap_mux.errors import UsageError
from dap_mux.rank_sets import Mesh
from dap_mux.user_files import NoHome

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Origin(Struct, frozen=True):
    """The source of a value, and its name in messages."""

    strength: Strength
    label: str


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
    view: Literal["auto", "ranks", "classes"]
    scope: Literal["auto", "rank", "class", "all"]
    threads: Literal["auto", "main", "user", "all"]
    classes_above: int
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
    origins: Mapping[str, Origin]

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
        return cls(**values, origins=_origins(winners))

    def with_launch(self, launch: Mapping[str, object], cwd: Path | None = None) -> Config:
        """Add the attributes of an editor's attach or launch request, unless overridden."""
        place = from_launch(launch, cwd)
        better = {
            name: place for name in place.values if self.origins[name].strength <= Strength.LAUNCH
        }
        values: dict[str, Any] = {name: _read(name, place) for name in better}
        return replace(self, **values, origins={**self.origins, **_origins(better)})

    def explain(self) -> list[Row]:
        """Return each option's value, as a string, number or boolean, and its origin."""
        return [
            Row(
                option.name,
                _show(option, getattr(self, option.name)),
                self.origins[option.name].label,
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


def _origins(winners: Mapping[str, Source]) -> dict[str, Origin]:
    return {name: Origin(place.strength, place.origin(name)) for name, place in winners.items()}


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
