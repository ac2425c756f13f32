"""The page's server: on this machine alone unless somebody says otherwise, behind a token."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from stair.errors import StairError, option
from stair.review.app import make_app
from stair.review.desk import Desk
from stair.review.guard import SERVER, Guard, new_token

HOME: Final = "127.0.0.1"
OWN_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the page is found."""

    host: str
    port: int
    token: str

    @property
    def address(self) -> str:
        name = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> list[str]:
        """The names under which a browser may ask for it."""
        names = list(OWN_NAMES)
        if self.host not in OWN_NAMES:
            own = [self.host] if self.host not in ("0.0.0.0", "::") else _own_addresses()
            names += [f"[{name}]" if ":" in name else name for name in own]
        return [f"{name}:{self.port}" for name in dict.fromkeys(names)]


def serve(
    desk: Desk,
    *,
    host: str = HOME,
    port: int = 0,
    token: str | None = None,
    most_upload: int,
    opened: bool,
    say: Callable[[str], object],
    begin: Callable[[], object] = lambda: None,
) -> None:
    """Until Ctrl-C. The address is printed, and opened in the browser where there is one.

    `begin` is called when there is a place to listen at: no work is started for nothing.
    """
    import uvicorn

    from stair.review.connections import Server

    listening = _listen(host, port)
    place = Place(host, listening.getsockname()[1], token or new_token())
    app = Guard(
        make_app(desk, most_upload=most_upload), token=place.token, hosts=place.hosts,
        cookie=f"stair-{place.port}", most_upload=most_upload,
    )  # fmt: skip
    settings: dict[str, Any] = {**SERVER, "log_level": "warning", "lifespan": "off"}
    server = Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **settings))
    begin()
    say(place.address)
    if host not in OWN_NAMES:
        say(
            f"Anybody who can reach {host} and knows this address sees the data and can judge; "
            "what is sent is not encrypted. Ctrl-C ends it."
        )
    if opened:
        threading.Timer(0.3, webbrowser.open, [place.address]).start()
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
        if not desk.jobs.end():
            sys.stdout.flush()
            os._exit(0)  # in the middle of learning: what was decided is on the disk
        desk.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, since asyncio turns Nagle's waiting off only there: it costs 40 ms a click.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # a browser that is quicker than we are waits instead of failing
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise StairError(
            f"cannot listen at {host}:{port}: {why.lower()}; try another {option('port')}"
        ) from None
    return listening


def _own_addresses() -> list[str]:
    name = socket.gethostname()
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    except OSError:
        found = set()
    return [name, *sorted(found)]
