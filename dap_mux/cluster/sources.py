"""The source of each scheme: built-in ones, and those of other packages by entry point."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from dap_mux.cluster.source import Source, SourceSpec

GROUP: Final = "dap_mux.sources"
# The same as in pyproject.toml, for editable installs that are older than that.
BUILT_IN: Final = {
    "dask": "dap_mux.cluster.framework_source:FrameworkSource",
    "k8s": "dap_mux.cluster.kubernetes:Kubernetes",
    "oc": "dap_mux.cluster.kubernetes:Kubernetes",
    "openpai": "dap_mux.cluster.openpai:OpenPai",
    "pid": "dap_mux.cluster.pid:Pids",
    "ray": "dap_mux.cluster.framework_source:FrameworkSource",
    "slurm": "dap_mux.cluster.slurm:Slurm",
    "ssh": "dap_mux.cluster.ssh:Ssh",
}


def source_of(word: SourceSpec) -> Source | None:
    """Return the source for this endpoint, None if there is none. Raises `UsageError`."""
    if word.scheme in BUILT_IN:
        module, _, name = BUILT_IN[word.scheme].partition(":")
        made = getattr(import_module(module), name)
    else:
        from importlib.metadata import entry_points  # noqa: PLC0415  (30 modules, seldom used)

        found = entry_points(group=GROUP, name=word.scheme)
        if not found:
            return None
        made = next(iter(found)).load()
    return cast("Source", made(word))
