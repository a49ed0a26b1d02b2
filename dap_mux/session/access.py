"""Access control: the token, TLS, and which addresses may be listened on."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from dap_mux.addresses import is_loopback
from dap_mux.config import Config
from dap_mux.engine.admission import Token
from dap_mux.errors import Refused, UsageError
from dap_mux.private_files import check_private, new_token, token_of
from dap_mux.shell.auth import Guard
from dap_mux.user_files import check_regular

MAX_HOSTS_SHOWN = 4  # in a warning
SAFER_ALTERNATIVE = (
    "Or listen on 127.0.0.1 and forward the port with ssh -L or kubectl port-forward"
)


class Access(Struct, frozen=True):
    """What a session's listeners require. `tcp` and `unix` have the same token."""

    tcp: Guard
    unix: Guard
    tls: ssl.SSLContext | None
    secret: str

    def __repr__(self) -> str:
        """The secret shows itself nowhere."""
        return f"Access(tcp={self.tcp}, unix={self.unix}, tls={self.tls})"


def access_of(config: Config) -> Access:
    """Read the token and the certificate. Raises Refused, UsageError."""
    check_bind(config)
    secret = token_of(config.token_file) if config.token_file else new_token()
    token = Token(secret)
    return Access(
        tcp=Guard(token, asks_all=not is_loopback(config.listen.host)),
        unix=Guard(token),
        tls=_tls_of(config),
        secret=secret,
    )


def check_bind(config: Config) -> None:
    """Raise Refused for an address beyond loopback without a token, or with a token but no TLS."""
    host = config.listen.host
    if is_loopback(host):
        return
    if not config.token_file:
        raise Refused(
            f"refused to listen on {host} without a token: anyone who reaches this port can run "
            "code in every rank. Give a token file (--token-file) and TLS (--tls-cert, --tls-key). "
            f"{SAFER_ALTERNATIVE}"
        )
    if not (config.tls_cert or config.insecure):
        raise Refused(
            f"refused to listen on {host} without TLS: anyone who sees the traffic learns the "
            "token. Give a certificate (--tls-cert, --tls-key), or --insecure on a network that "
            f"you trust. {SAFER_ALTERNATIVE}"
        )


def _tls_of(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        if config.tls_key is not None:
            raise UsageError(f"--tls-key {config.tls_key} requires --tls-cert")
        return None
    key = config.tls_key or config.tls_cert
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        for file in (config.tls_cert, key):
            check_regular(file, file.stat())
        check_private(key, key.stat())
        context.load_cert_chain(config.tls_cert, key, password=lambda: _no_password(key))
    except ssl.SSLError as error:
        raise UsageError(
            f"{config.tls_cert} and {key} are not a certificate and its key: {error.reason}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {error.filename or key}: {error.strerror}") from None
    return context


def _no_password(key: Path) -> str:
    raise UsageError(f"{key} is protected by a password, which dap-mux cannot ask for")


def beyond_loopback(hosts: Iterable[str]) -> str:
    """Return a warning about ranks that other machines can reach, '' where there are none."""
    open_to_all = sorted({host for host in hosts if not is_loopback(host)})
    if not open_to_all:
        return ""
    named = ", ".join(open_to_all[:MAX_HOSTS_SHOWN])
    if len(open_to_all) > MAX_HOSTS_SHOWN:
        named += f" and {len(open_to_all) - MAX_HOSTS_SHOWN} more hosts"
    return (
        f"ranks listen on {named}, not on loopback: debugpy has no authentication, so anyone "
        "who reaches these ports can run code there, and the traffic is not encrypted. Safer: let "
        "ranks listen on 127.0.0.1 and forward the ports (ssh -L, kubectl port-forward)"
    )
