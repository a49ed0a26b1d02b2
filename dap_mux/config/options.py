"""The table of options: all names of each, its kind, its default and its help."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dap_mux.config.values import (
    ADDRESS,
    FILE,
    FOLDER,
    LEVELS,
    MESH,
    PORT,
    PROGRAM,
    TRUTH,
    Address,
    Kind,
    choice,
    count,
    seconds,
    size,
)

ALL = ("run", "attach", "adapter")
RUN = ("run",)
JOIN = ("list", "console", "cast", "compare", "stacks", "why", "lsp", "doctor")


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
           ("attach", "adapter"), "the Python of the job, for dask: and ray:",
           own_attribute="clusterPython"),  # debugpy has a `python` of its own
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
)
# fmt: on
BY_NAME = {option.name: option for option in OPTIONS}
