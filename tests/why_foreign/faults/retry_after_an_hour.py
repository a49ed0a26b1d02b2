"""A server says that one should try again in an hour, and the client obeys.

https://github.com/netdata/netdata/pull/5082: the client hangs for N seconds if the header of a
response contains `Retry-After: N`; it was 3600.
"""

from __future__ import annotations

import http.server
import threading
import time
import urllib.error
import urllib.request

import torch.distributed as dist


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(429 if self.path.endswith("2") else 200)
        self.send_header("Retry-After", "3600")
        self.end_headers()


def fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url) as response:
            return bytes(response.read())
    except urllib.error.HTTPError as error:
        time.sleep(int(error.headers["Retry-After"]))  # culprit
        return fetch(url)


def main() -> None:
    dist.init_process_group("gloo")
    hub = http.server.HTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    fetch(f"http://127.0.0.1:{hub.server_port}/weights/{dist.get_rank()}")  # culprit: call
    dist.barrier()


main()
