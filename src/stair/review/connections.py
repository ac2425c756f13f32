"""Connections to the page: never so many that no more can be opened, and none that waits for ever.

Who has said nothing yet costs a file descriptor, and there are few of them. Without a limit some
hundred silent connections would keep everybody else away, and the accepting loop would spin.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from stair.review.guard import share_of_descriptors

MOST_CONNECTIONS: Final = 64
MOST_WAITING: Final = 100


def most_connections() -> int:
    """A part of the file descriptors that this process may have; the rest is for files."""
    return share_of_descriptors(4, MOST_CONNECTIONS)


class Connection(H11Protocol):
    """One connection. Where there are too many, the one that has been silent longest gives way."""

    last_heard: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.last_heard = self.loop.time()
        # As after an answer: whoever then says nothing is not waited for.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        if len(self.connections) > most_connections():
            others = [each for each in self.connections if isinstance(each, Connection)]
            silent = [each for each in others if each.is_silent]
            min(silent or others, key=lambda each: each.last_heard).give_way()

    def data_received(self, data: bytes) -> None:
        self.last_heard = self.loop.time()
        super().data_received(data)

    @property
    def is_silent(self) -> bool:
        """Whether nothing is being answered: it has asked nothing, or not to the end."""
        return self.cycle is None or self.cycle.response_complete

    def give_way(self) -> None:
        self.connections.discard(self)  # at once, since it may take a moment to be gone
        self.transport.abort()


class Server(uvicorn.Server):
    """asyncio lets as many connections wait as it takes at once. More may wait than may be taken:
    the system lets a browser try again only after a second."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MOST_WAITING)
