"""A tiny app behind the Guard, in this process or in one of its own with a real socket."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from stair.review.connections import Server
from stair.review.guard import SERVER, Guard

TOKEN = "the-token-of-these-tests"
COOKIE = "stair-8765"
HOST = "127.0.0.1:8765"
MOST, MOST_UPLOAD = 1_000, 5_000_000


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the length of what it was sent, and breaks where it is asked to."""
    assert scope["type"] == "http"
    path, heard = scope["path"], 0
    if path == "/break":
        raise RuntimeError("a secret of the app")
    if path != "/unread":
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RuntimeError("the app was told that the browser left")
            heard += len(message["body"])
            if not message["more_body"]:
                break
    headers = [(b"content-type", b"text/plain")]
    if path == "/cached":
        headers += [
            (b"Cache-Control", b"private, max-age=60"),
            (b"Server", b"detail/1.2.3"),
            (b"Access-Control-Allow-Origin", b"*"),
            (b"X-Frame-Options", b"ALLOWALL"),
        ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/half":
        raise RuntimeError("a secret of the app")
    body = f"heard {heard} at {path}".encode()
    await send({"type": "http.response.body", "body": body, "more_body": False})


def guarded(*hosts: str, inner: Any = app) -> Guard:
    return Guard(
        inner,
        token=TOKEN,
        hosts=hosts or (HOST, "localhost:8765", "[::1]:8765"),
        cookie=COOKIE,
        most_bytes=MOST,
        most_upload=MOST_UPLOAD,
    )


def peak_kilobytes() -> int:
    """The most memory that this process has held. What the system tells of a child process begins
    at the size of its parent, so it is asked for the program's own."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Serve until the standard input ends; then say how much memory it took."""
    place = socket.create_server(("127.0.0.1", 0))
    port = place.getsockname()[1]
    guard = guarded(f"127.0.0.1:{port}", f"localhost:{port}")
    server = Server(uvicorn.Config(guard, log_level="warning", **SERVER))

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[place]))
        while not server.started:
            await asyncio.sleep(0.01)
        before = peak_kilobytes()
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(peak_kilobytes() - before, flush=True)
        server.should_exit = True
        await serving

    asyncio.run(serve())


if __name__ == "__main__":
    main()
