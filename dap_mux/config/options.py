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
    """`attribute` is the key in launch.json, `commands` those that take the flag.

    The key in a TOML file is `name`, with hyphens or underscores.
    """

    name: str
    kind: Kind[Any]
    default: object
    flag: str
    variable: str
    attribute: str
    commands: tuple[str, ...]
    help: str


# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("listen", ADDRESS, Address("127.0.0.1", 5677),
           "--listen", "DAP_MUX_LISTEN", "listenAddress",  # debugpy has a `listen` of its own
           ALL, "where editors connect; port 0 takes a free one"),
    Option("base_port", PORT, 5678,
           "--base-port", "DAP_MUX_BASE_PORT", "basePort",
           RUN, "rank 0's debugpy port; rank N takes this + N, or the next free one"),
    Option("dial_listen", ADDRESS, Address("127.0.0.1", 5676),
           "--dial-listen", "DAP_MUX_DIAL_LISTEN", "dialListen",
           ("attach", "run"),
           "where ranks that dial out connect (attach dial:N, run --dial -- LAUNCHER)"),
    Option("python", PROGRAM, None,
           "--python", "DAP_MUX_PYTHON", "clusterPython",  # debugpy has a `python` of its own
           ("attach", "adapter"), "the Python of the job, for dask: and ray:"),
    Option("mesh", MESH, None,
           "--mesh", "DAP_MUX_MESH", "mesh",
           ALL, "how ranks are laid out, the last dimension varying fastest"),
    Option("log_dir", FOLDER, None,
           "--log-dir", "DAP_MUX_LOG_DIR", "logDir",
           ALL, "where log files go, one for each rank; a new temporary folder by default"),
    Option("verbosity", count(0, 3), 0,
           "-v", "DAP_MUX_VERBOSITY", "verbosity",
           ALL, "more messages: -v, -vv or -vvv"),
    Option("log", LEVELS, None,
           "--log", "DAP_MUX_LOG", "log",
           ALL, "the level of some components' messages: rank.3=debug,client=info"),
    Option("wait", TRUTH, True,
           "--wait", "DAP_MUX_WAIT", "wait",
           RUN, "ranks wait for a debugger before their first line"),
    Option("view", choice("auto", "ranks", "classes"), "auto",
           "--view", "DAP_MUX_VIEW", "view",
           ALL, "a thread for each rank, or for each class of ranks at the same place"),
    Option("scope", choice("auto", "rank", "class", "all"), "auto",
           "--scope", "DAP_MUX_SCOPE", "scope",
           ALL, "what a step, continue or pause acts on"),
    Option("threads", choice("auto", "main", "user", "all"), "auto",
           "--threads", "DAP_MUX_THREADS", "threads",
           ALL, "the rows of a rank: one, one for each thread in user code, or all Python threads"),
    Option("classes_above", count(1, 1_000_000), 64,
           "--classes-above", "DAP_MUX_CLASSES_ABOVE", "classesAbove",
           ALL, "with view auto, show classes if there are more ranks than this"),
    Option("settle", seconds(10), 0.05,
           "--settle", "DAP_MUX_SETTLE", "settle",
           ALL, "stops of several ranks within this time are one event"),
    Option("step_grace", seconds(60), 0.6,
           "--step-grace", "DAP_MUX_STEP_GRACE", "stepGrace",
           ALL, "how long a class step waits for its slowest rank"),
    Option("request_timeout", seconds(3600), 5.0,
           "--request-timeout", "DAP_MUX_REQUEST_TIMEOUT", "requestTimeout",
           ALL, "how long a rank may take to reply; evaluate requests are not limited"),
    Option("release_after", seconds(3600), 12.0,
           "--release-after", "DAP_MUX_RELEASE_AFTER", "releaseAfter",
           ALL, "a rank that hears nothing from a stopped session for so long runs on; 0: never"),
    Option("max_message", size(64 * 1024, 1024**3), 16 * 1024**2,
           "--max-message", "DAP_MUX_MAX_MESSAGE", "maxMessage",
           ALL, "the largest message accepted from an editor or a rank"),
    Option("token_file", FILE, None,
           "--token-file", "DAP_MUX_TOKEN_FILE", "tokenFile",
           (*ALL, *JOIN), "file with the session's token; a session creates it if it is missing"),
    Option("tls_cert", FILE, None,
           "--tls-cert", "DAP_MUX_TLS_CERT", "tlsCert",
           ALL, "the certificate (PEM) for editors that connect by TLS"),
    Option("tls_key", FILE, None,
           "--tls-key", "DAP_MUX_TLS_KEY", "tlsKey",
           ALL, "its private key, if that is in a separate file"),
    Option("tls_ca", FILE, None,
           "--tls-ca", "DAP_MUX_TLS_CA", "tlsCa",
           JOIN, "connect by TLS; the certificate (PEM) that verifies the session's"),
    Option("insecure", TRUTH, False,
           "--insecure", "DAP_MUX_INSECURE", "insecure",
           (*ALL, *JOIN), "allow addresses beyond loopback with only a token, without TLS"),
)
# fmt: on
BY_NAME = {option.name: option for option in OPTIONS}
