"""Who may speak to the page: this machine's own browser with the token, and nobody else.

Other pages in the same browser, other names that lead to this machine and bodies without end are
refused before the app hears of them. Every answer, a refusal too, carries the same strict headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import re
import secrets
import urllib.parse
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def share_of_descriptors(parts: int, most: int) -> int:
    """How many connections may be open (or taken at once) where a process may have few file
    descriptors: one of so many parts of them, and never more than `most`."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return most
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if allowed < 0 else max(1, min(most, allowed // parts))


SERVER: dict[str, object] = {
    "server_header": False,
    "proxy_headers": False,  # nobody may say that he is somebody else
    "access_log": False,  # the first address has the token in it
    "ws": "none",
    "http": "stair.review.connections:Connection",
    # Taken at once, each with a file descriptor; the others wait a moment. Up to four such lots are
    # open beside the connections that are known: taken, begun, known, and gone but not yet closed.
    "backlog": share_of_descriptors(16, 32),
    "h11_max_incomplete_event_size": 1 << 16,
}
"""What uvicorn is to be started with, so that it adds nothing that the Guard would not say."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_ALWAYS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
        "microphone=(), midi=(), payment=(), usb=()"
    ),
}
_READING = frozenset({"GET", "HEAD"})
_METHODS = _READING | {"POST", "PUT", "PATCH", "DELETE"}
_LONGEST_ADDRESS = 8_000
_MOST_HEADERS = 100
_LINGER_BYTES = 16_000_000
_LINGER_SECONDS = 2.0
_ODD = re.compile(r"[\x00-\x1f\x7f\\]")
_OPEN_AGAIN = "Open the address that stair printed in the terminal."

_log = logging.getLogger("stair.review")


def size(n_bytes: int) -> str:
    """Three digits and a unit: "1.5 GB"."""
    for unit, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {word}"
    return f"{n_bytes} bytes"


def new_token() -> str:
    """A secret that nobody guesses, fit for an address."""
    return secrets.token_urlsafe(32)


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """Why a request is not let in: a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """An ASGI app in front of another one, which sees only what it may answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: Collection[str],
        cookie: str,
        most_bytes: int = 1_000_000,
        upload_path: str = "/upload",
        most_upload: int = 500_000_000,
    ) -> None:
        if not token or not re.fullmatch(r"[\w.~+/=-]+", token, re.ASCII):
            raise ValueError("the token must be letters, digits, dashes; see new_token()")
        if not re.fullmatch(r"[\w-]+", cookie, re.ASCII):
            raise ValueError(f"{cookie!r} cannot be the name of a cookie")
        if isinstance(hosts, str):
            raise ValueError("hosts must be several names, such as {'127.0.0.1:8765'}")
        self.app = app
        self._token, self._cookie = token, cookie
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = {f"{scheme}://{h}" for h in self._hosts for scheme in ("http", "https")}
        self._most_bytes, self._most_upload = most_bytes, most_upload
        self._upload_path = upload_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the wish to connect, which has to be heard before it is declined
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send)
        is_upload = scope["path"] == self._upload_path
        exchange.most = self._most_upload if is_upload else self._most_bytes
        try:
            away = self._judge(scope, exchange)
        except Refusal as refusal:
            await exchange.refuse(refusal)
            return
        if away is not None:
            await exchange.answer(away)
            return
        try:
            await self.app(scope, exchange.receive, exchange.send)
            await exchange.release()
        except Exception as error:
            await exchange.failed(error)

    # Who is asking, and for what ------------------------------------------------------------------

    def _judge(self, scope: Scope, exchange: _Exchange) -> Response | None:
        """Refuse, or say where to go instead, or let in (None)."""
        headers, is_reading = exchange.headers, scope["method"] in _READING
        self._judge_host(headers.getlist("host"))
        self._judge_form(scope, exchange)
        has_bearer = self._has_bearer(headers.getlist("authorization"))
        self._judge_origin(is_reading, headers, has_bearer)
        query = urllib.parse.parse_qsl(
            bytes(scope.get("query_string", b"")).decode("latin-1"), keep_blank_values=True
        )
        given = [value for name, value in query if name == "token"]
        by_address = len(given) == 1 and self._is_token(given[0])
        if not (by_address or has_bearer or self._has_cookie(headers.getlist("cookie"))):
            raise Refusal(403, f"This page is for one person only. {_OPEN_AGAIN}")
        if (exchange.declared or 0) > exchange.most:
            raise exchange.too_large()
        if not (given and scope["path"] == "/" and is_reading):
            return None
        # To the same page, whose address can be seen by others; the cookie keeps the token.
        rest = urllib.parse.urlencode([pair for pair in query if pair[0] != "token"])
        away = RedirectResponse(f"/{'?' if rest else ''}{rest}", 303)
        if by_address:
            value = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            away.headers["set-cookie"] = value
        return away

    def _judge_host(self, given: list[str]) -> None:
        """A page elsewhere can let its own name point here, but not change the name it asks for.

        Starlette's own check leaves out the port, by which pages of this machine differ."""
        if len(given) != 1:
            raise Refusal(400, f"The request names no host, or several. {_OPEN_AGAIN}")
        if given[0].lower() not in self._hosts:
            raise Refusal(421, f"This page is not served under that name. {_OPEN_AGAIN}")

    def _judge_form(self, scope: Scope, exchange: _Exchange) -> None:
        path = str(scope["path"])
        raw = bytes(scope.get("raw_path") or path.encode("utf-8", "replace"))
        if len(raw) + len(scope.get("query_string", b"")) > _LONGEST_ADDRESS:
            raise Refusal(414, f"The address is too long. {_OPEN_AGAIN}")
        if len(scope["headers"]) > _MOST_HEADERS:
            raise Refusal(431, f"The request has too many headers. {_OPEN_AGAIN}")
        if scope["method"] not in _METHODS:
            raise Refusal(405, "The page does not answer requests of this kind.")
        rooted = path.startswith("/") and not path.startswith("//")
        if not rooted or {".", ".."} & set(path.split("/")) or _ODD.search(path):
            raise Refusal(400, f"The address is not one of this page. {_OPEN_AGAIN}")
        if exchange.has_body and exchange.declared is None:
            raise Refusal(400, "The request does not say clearly how long it is.")

    def _judge_origin(self, is_reading: bool, headers: Headers, has_bearer: bool) -> None:
        """Only our own page may ask for anything; others may at most link to it."""
        origins = headers.getlist("origin")
        is_ours = len(origins) <= 1 and {each.lower() for each in origins} <= self._origins
        if {site.lower() for site in headers.getlist("sec-fetch-site")} - {"same-origin", "none"}:
            is_document = headers.getlist("sec-fetch-dest") == ["document"]
            is_link = headers.getlist("sec-fetch-mode") == ["navigate"] and is_document
            is_ours = is_ours and is_reading and is_link
        if not is_ours or not (is_reading or origins or has_bearer):
            raise Refusal(403, f"Another page asked for this, so it is refused. {_OPEN_AGAIN}")

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _has_bearer(self, given: list[str]) -> bool:
        """No browser sends this header by itself, so whoever does means it."""
        scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        return scheme.lower() == "bearer" and self._is_token(value.strip())

    def _has_cookie(self, given: list[str]) -> bool:
        """Any cookie of our name will do: other servers on this machine can add some."""
        named = (pair.partition("=") for pair in ";".join(given).split(";"))
        return any(n.strip() == self._cookie and self._is_token(v.strip()) for n, _, v in named)


class _Exchange:
    """One request and its answer: what came in is counted, what goes out gets our headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.headers, self.most = scope, Headers(scope=scope), 0
        self._receive, self._send = receive, send
        lengths = self.headers.getlist("content-length")
        is_clear = len(lengths) == 1 and re.fullmatch(r"[0-9]{1,18}", lengths[0]) is not None
        # The length that the request gives itself: 0 where it gives none, None where unclear.
        self.declared = (int(lengths[0]) if is_clear else None) if lengths else 0
        self._is_chunked = "transfer-encoding" in self.headers
        self.has_body = self._is_chunked or lengths not in ([], ["0"])
        self._heard, self._heard_all = 0, False
        self._started = False
        self._closed = False  # refused in the middle: whatever the app still says is dropped
        self._gone = False
        self._held: list[Message] = []

    def too_large(self) -> Refusal:
        return Refusal(413, f"This is too large; at most {size(self.most)} can be sent here.")

    # In -------------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next part of the request. Too much of it looks to the app as if the browser left."""
        if self._closed:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone = True
            return message
        self._heard += len(message.get("body", b""))
        self._heard_all = not message.get("more_body", False)
        if self._heard > self.most:
            self._closed = True
            if not self._started:
                self._held.clear()
                await self.refuse(self.too_large())
            return {"type": "http.disconnect"}
        return message

    # Out ------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Pass on what the app answers, with our headers.

        An answer of status 500 waits until the app is done: if it then fails, our own words go out.
        """
        if self._closed:
            return
        if message["type"] == "http.response.start":
            message = {**message, "headers": _with_ours(message, is_last=self._is_endless())}
            if message["status"] == 500:
                self._held.append(message)
                return
            self._started = True
        elif self._held:
            self._held.append(message)
            return
        elif not message.get("more_body", False) and self._is_endless():
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {**message, "body": b""}
        await self._send(message)

    async def release(self) -> None:
        """Send what waited."""
        held, self._held = self._held, []
        for message in held:
            self._started = True
            await self._send(message)

    async def failed(self, error: Exception) -> None:
        """The app broke: the reason goes to the log, and one sentence to the person."""
        if self._closed:
            return  # it was told that the browser left
        if self._gone:
            _log.info("the browser left in the middle of a request: %r", error)
            return
        _log.error("a request failed", exc_info=error)
        if not self._started:
            self._held.clear()
            sentence = "Something went wrong here; the terminal in which stair runs says what."
            await self.refuse(Refusal(500, sentence))

    async def refuse(self, refusal: Refusal) -> None:
        text = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>stair</title></head>'
            f"<body><p>{html.escape(refusal.sentence)}</p></body></html>\n"
        )
        await self.answer(HTMLResponse(text, refusal.status))

    async def answer(self, response: Response) -> None:
        """Answer in place of the app.

        What the browser is still sending is heard for a moment and thrown away: one whose
        connection is cut off while it speaks shows an error of its own in place of our sentence.
        """
        self._started = self._closed = True
        start = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
        await self._send({**start, "headers": _with_ours(start, is_last=self.has_body)})
        body = b"" if self.scope["method"] == "HEAD" else bytes(response.body)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        await self._linger()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _is_endless(self) -> bool:
        """Whether the request goes on and does not say how long: a server would listen for ever."""
        return self._is_chunked and not self._heard_all

    async def _linger(self) -> None:
        """Throw away what is still coming, for a moment."""
        if not self.has_body or self._heard_all or "expect" in self.headers:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                left = _LINGER_BYTES
                while left > 0:
                    message = await self._receive()
                    if not message.get("more_body", False):  # the end of it, or nobody is there
                        return
                    left -= len(message.get("body", b""))


def _with_ours(message: Message, *, is_last: bool) -> list[tuple[bytes, bytes]]:
    """Our headers in place of any of the same name; the app alone decides what may be cached.
    `is_last` where nothing more is heard on the connection."""
    headers = MutableHeaders(raw=[(n.lower(), v) for n, v in message.get("headers", ())])
    for name in {"server", *(n for n in headers if n.startswith("access-control-"))}:
        del headers[name]
    headers.setdefault("cache-control", "no-store")
    headers.update(_ALWAYS)
    if is_last:
        headers["connection"] = "close"
    return headers.raw
