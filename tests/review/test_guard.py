"""Who may speak to the review page, and what everybody else is told."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarded import COOKIE, HOST, MOST, MOST_UPLOAD, TOKEN, guarded
from places import TESTS
from stair.review.guard import POLICY, Guard, new_token

PRINTED = "Open the address that stair printed in the terminal"
HOST_LINE = ("host", HOST)
BEARER = ("authorization", f"Bearer {TOKEN}")
OWN_COOKIE = ("cookie", f"{COOKIE}={TOKEN}")
ORIGIN = ("origin", f"http://{HOST}")
Header = tuple[str, str]


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: str
    heard: int

    def header(self, name: str) -> str | None:
        found = [v for k, v in self.headers if k == name]
        assert len(found) <= 1, name
        return found[0] if found else None


def ask(
    path: str = "/",
    *headers: Header,
    method: str = "GET",
    query: str = "",
    body: tuple[bytes, ...] = (b"",),
    guard: Guard | None = None,
) -> Answer:
    """One request without a socket; the answer's order is checked too."""
    sent, heard = exchanged(path, headers, method, query, body, guard or guarded())
    assert [m["type"] for m in sent[:1]] == ["http.response.start"]
    assert {m["type"] for m in sent[1:]} == {"http.response.body"}
    assert [m.get("more_body", False) for m in sent[1:]] == [True] * (len(sent) - 2) + [False]
    found = [(k.decode(), v.decode()) for k, v in sent[0]["headers"]]
    told = b"".join(m["body"] for m in sent[1:]).decode()
    return Answer(sent[0]["status"], found, told, heard)


def exchanged(
    path: str,
    headers: tuple[Header, ...],
    method: str,
    query: str,
    body: tuple[bytes, ...],
    guard: Guard,
) -> tuple[list[Any], int]:
    """All that was sent in answer, and how many parts of the body were heard."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in headers],
    }
    parts = list(body)
    sent: list[Any] = []

    async def receive() -> Any:
        if not parts:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent, len(body) - len(parts)


def let_in(answer: Answer) -> bool:
    if answer.body.startswith("heard"):
        assert answer.status == 200
        return True
    assert answer.status >= 400
    assert "heard" not in answer.body
    return False


# The token ---------------------------------------------------------------------------------------


def test_no_request_is_answered_without_the_token() -> None:
    """Not the page, not a static file, not the health check: nothing is told, only what to do."""
    for path in ("/", "/static/htmx.js", "/health", "/upload"):
        answer = ask(path, HOST_LINE)
        assert answer.status == 403
        assert PRINTED in answer.body
        assert answer.header("set-cookie") is None


@pytest.mark.parametrize(
    "header",
    [
        BEARER,
        ("authorization", f"bearer   {TOKEN}"),
        OWN_COOKIE,
        ("cookie", f"a=b; {COOKIE}={TOKEN};c=d"),
        ("cookie", f"{COOKIE}=tossed; {COOKIE}={TOKEN}"),
    ],
)
def test_the_token_comes_in_a_header(header: Header) -> None:
    assert let_in(ask("/", HOST_LINE, header))


@pytest.mark.parametrize(
    "header",
    [
        ("authorization", TOKEN),
        ("authorization", f"Basic {TOKEN}"),
        ("authorization", f"Bearer {TOKEN[:-1]}"),
        ("authorization", f"Bearer {TOKEN}x"),
        ("authorization", "Bearer"),
        ("authorization", "Bearer é\xff"),
        ("cookie", f"stair-8766={TOKEN}"),
        ("cookie", TOKEN),
        ("cookie", f"{COOKIE}="),
        ("cookie", f'{COOKIE}="{TOKEN}"'),
    ],
)
def test_anything_but_the_token_is_refused(header: Header) -> None:
    assert not let_in(ask("/", HOST_LINE, header))


def test_two_authorizations_are_none() -> None:
    assert not let_in(ask("/", HOST_LINE, BEARER, ("authorization", "Bearer other")))


@given(st.text(max_size=60))
def test_guessing_does_not_help(guess: str) -> None:
    """Whatever is given in place of the token is refused in words, never with a failure."""
    assert guess == TOKEN or ask("/", HOST_LINE, query=f"token={guess}").status == 403


def test_the_address_gives_the_cookie_and_loses_the_token() -> None:
    """The address that stays in the browser, its history and a screenshot holds no secret."""
    answer = ask("/", HOST_LINE, query=f"token={TOKEN}")
    assert answer.status == 303
    assert answer.header("location") == "/"
    assert answer.header("set-cookie") == f"{COOKIE}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    assert TOKEN not in answer.body
    more = ask("/", HOST_LINE, query=f"a=%0d%0aSet-Cookie:x&token={TOKEN}&b=1")
    assert more.header("location") == "/?a=%0D%0ASet-Cookie%3Ax&b=1"


def test_an_old_address_with_a_right_cookie_leads_to_the_page() -> None:
    answer = ask("/", HOST_LINE, OWN_COOKIE, query="token=old")
    assert (answer.status, answer.header("location")) == (303, "/")
    assert answer.header("set-cookie") is None


def test_elsewhere_the_token_in_the_address_lets_in_without_a_detour() -> None:
    assert let_in(ask("/rows", HOST_LINE, query=f"token={TOKEN}"))
    assert not let_in(ask("/rows", HOST_LINE, query=f"token={TOKEN}&token=x"))


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43


@pytest.mark.parametrize(
    "wrong",
    [{"token": ""}, {"token": "a;b"}, {"cookie": "a=b"}, {"cookie": ""}, {"hosts": "localhost"}],
)
def test_a_guard_that_would_guard_nothing_is_not_made(wrong: Any) -> None:
    given: dict[str, Any] = {"token": TOKEN, "hosts": {HOST}, "cookie": COOKIE, **wrong}
    with pytest.raises(ValueError):
        Guard(guarded().app, **given)


# Host and Origin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [HOST, "localhost:8765", "LOCALHOST:8765", "[::1]:8765"])
def test_own_names(host: str) -> None:
    assert let_in(ask("/", ("host", host), BEARER))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:8765.evil.example",
        f"{HOST}@evil.example",
        f"user@{HOST}",
        f"{HOST},evil.example",
        f" {HOST}",
        "localhost.:8765",
        "0.0.0.0:8765",
        "",
    ],
)
def test_a_name_that_somebody_else_points_here_is_refused(host: str) -> None:
    """DNS rebinding: evil.example leads to 127.0.0.1, and its page asks with all it has."""
    answer = ask("/", ("host", host), BEARER, OWN_COOKIE, query=f"token={TOKEN}")
    assert answer.status == 421
    assert answer.header("set-cookie") is None


@pytest.mark.parametrize("hosts", [[], [HOST_LINE, HOST_LINE], [HOST_LINE, ("host", "evil")]])
def test_no_host_or_two_are_refused_before_anything_else(hosts: list[Header]) -> None:
    assert ask("/", *hosts, BEARER).status == 400


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:9999",
        "http://localhost",
        "file://",
        f"ftp://{HOST}",
        f"http://{HOST}.evil.example",
        f"http://{HOST}/",
        f"http://evil@{HOST}",
    ],
)
def test_a_foreign_origin_is_refused_whatever_it_brings(origin: str, method: str) -> None:
    given = [HOST_LINE, BEARER, OWN_COOKIE, ("origin", origin)]
    assert ask("/judge", *given, method=method).status == 403


def test_two_origins_are_refused() -> None:
    assert ask("/", HOST_LINE, OWN_COOKIE, ORIGIN, ORIGIN).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_our_page_changes_anything(method: str) -> None:
    """A form on another page sends our cookie along in some browsers, but never our Origin."""
    assert not let_in(ask("/judge", HOST_LINE, OWN_COOKIE, method=method))
    assert not let_in(ask("/judge", HOST_LINE, method=method, query=f"token={TOKEN}"))
    assert not let_in(
        ask("/judge", HOST_LINE, OWN_COOKIE, ("authorization", "Bearer x"), method=method)
    )
    assert let_in(ask("/judge", HOST_LINE, OWN_COOKIE, ORIGIN, method=method))
    assert let_in(ask("/judge", HOST_LINE, BEARER, method=method))
    own = ("origin", "https://localhost:8765")
    assert let_in(ask("/judge", HOST_LINE, OWN_COOKIE, own, method=method))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Same-Site", "new-word"])
def test_what_the_browser_says_of_the_asker_counts(site: str) -> None:
    """Another server on this machine is "same-site", and its requests carry our cookie."""
    said = ("sec-fetch-site", site)
    assert not let_in(ask("/judge", HOST_LINE, OWN_COOKIE, ORIGIN, said, method="POST"))
    assert not let_in(ask("/judge", HOST_LINE, BEARER, said, method="POST"))
    assert not let_in(ask("/rows", HOST_LINE, OWN_COOKIE, said))
    frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")]
    assert not let_in(ask("/", HOST_LINE, OWN_COOKIE, said, *frame))


def test_a_link_elsewhere_may_lead_here() -> None:
    """The address with the token may be clicked in another page, such as a web terminal."""
    link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ]
    assert ask("/", HOST_LINE, *link, query=f"token={TOKEN}").status == 303
    assert ask("/", HOST_LINE, *link).status == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_page_and_the_address_bar_are_no_strangers(site: str) -> None:
    assert let_in(ask("/rows", HOST_LINE, OWN_COOKIE, ("sec-fetch-site", site)))


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_other_methods_are_refused(method: str) -> None:
    """Above all the question whether another page may ask: the answer is no, without CORS."""
    answer = ask("/", HOST_LINE, BEARER, ORIGIN, method=method)
    assert answer.status == 405
    assert not [name for name, _ in answer.headers if name.startswith("access-control")]


def test_web_sockets_are_refused() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guarded()({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# The form of a request ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "http://evil/",
        "",
        "*",
        "//evil/",
        "/..",
        "/static/../../etc/passwd",
        "/static/./x",
        "/static/..",
        "/a\0b",
        "/a\\..\\b",
        "/a\nb",
    ],
)
def test_odd_addresses_are_refused(path: str) -> None:
    assert ask(path, HOST_LINE, BEARER).status == 400


def test_long_addresses_and_many_headers_are_refused() -> None:
    assert ask("/" + "a" * 9_000, HOST_LINE, BEARER).status == 414
    assert ask("/", HOST_LINE, BEARER, query="a" * 9_000).status == 414
    assert ask("/", HOST_LINE, BEARER, *[("x-many", "1")] * 200).status == 431


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "most"), [("/judge", MOST), ("/upload", MOST_UPLOAD)])
def test_bodies_have_a_largest_size(path: str, most: int) -> None:
    """By what the request says of itself, and by what then really comes."""
    post: Any = {"method": "POST"}
    half = b"a" * (most // 2)
    assert ask(path, HOST_LINE, BEARER, **post, body=(half, half)).body == f"heard {most} at {path}"
    said = ask(path, HOST_LINE, BEARER, ("content-length", str(most + 1)), **post)
    assert said.status == 413
    assert "at most" in said.body
    came = ask(path, HOST_LINE, BEARER, **post, body=(half, half, b"a", b"never", b"heard"))
    assert (came.status, came.body) == (said.status, said.body)
    assert "heard" not in came.body
    lied = ask(path, HOST_LINE, BEARER, ("content-length", "5"), **post, body=(half, half, b"a"))
    assert lied.status == 413


@pytest.mark.parametrize("lengths", [["-1"], ["1e3"], ["5", "5"], ["9" * 30], [""], ["+5"]])
def test_unclear_lengths_are_refused(lengths: list[str]) -> None:
    said = [("content-length", length) for length in lengths]
    assert ask("/", HOST_LINE, BEARER, *said, method="POST").status == 400


def test_only_the_upload_itself_may_be_large() -> None:
    large = ("content-length", str(MOST + 1))
    for path in ("/upload/", "/upload/x", "/Upload", "/uploads"):
        assert ask(path, HOST_LINE, BEARER, large, method="POST").status == 413


# Headers and failures ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda: ask("/", HOST_LINE, BEARER),
        lambda: ask("/cached", HOST_LINE, BEARER),
        lambda: ask("/", HOST_LINE),
        lambda: ask("/"),
        lambda: ask("/", HOST_LINE, BEARER, method="OPTIONS"),
        lambda: ask("/", HOST_LINE, BEARER, ("content-length", "99999")),
        lambda: ask("/", HOST_LINE, query=f"token={TOKEN}"),
        lambda: ask("/break", HOST_LINE, BEARER),
    ],
)
def test_every_answer_carries_the_headers(answer: Callable[[], Answer]) -> None:
    found = answer()
    assert found.header("content-security-policy") == POLICY
    assert found.header("x-content-type-options") == "nosniff"
    assert found.header("referrer-policy") == "no-referrer"
    assert found.header("x-frame-options") == "DENY"
    assert found.header("cross-origin-opener-policy") == "same-origin"
    assert found.header("cross-origin-resource-policy") == "same-origin"
    assert "camera=()" in (found.header("permissions-policy") or "")
    assert found.header("cache-control") in ("no-store", "private, max-age=60")
    assert found.header("server") is None
    assert not [name for name, _ in found.headers if name.startswith("access-control")]


def test_only_the_app_may_allow_caching() -> None:
    assert ask("/cached", HOST_LINE, BEARER).header("cache-control") == "private, max-age=60"
    assert ask("/", HOST_LINE, BEARER).header("cache-control") == "no-store"


def test_a_failure_is_one_sentence_for_the_person_and_a_story_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = ask("/break", HOST_LINE, BEARER)
    assert answer.status == 500
    assert "the terminal in which stair runs says what" in answer.body
    assert "secret" not in answer.body
    assert "a secret of the app" in caplog.text
    assert any(record.exc_info for record in caplog.records)  # whoever writes them down, and how


def test_starlette_s_own_words_for_a_failure_do_not_go_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Starlette answers "Internal Server Error" and fails afterwards: that answer has to wait."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def broken(_: Any) -> Any:
        raise RuntimeError("a secret of the app")

    async def meant(_: Any) -> Any:
        return PlainTextResponse("this is meant", 500)

    inner = Starlette(routes=[Route("/broken", broken), Route("/meant", meant)])
    guard = guarded(HOST, inner=inner)
    answer = ask("/broken", HOST_LINE, BEARER, guard=guard)
    assert answer.status == 500
    assert "the terminal" in answer.body
    assert "Internal" not in answer.body
    assert "a secret of the app" in caplog.text
    meant_answer = ask("/meant", HOST_LINE, BEARER, guard=guard)
    assert (meant_answer.status, meant_answer.body) == (500, "this is meant")


def test_a_browser_that_leaves_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    sent, _ = exchanged("/judge", (HOST_LINE, BEARER), "POST", "", (), guarded())
    assert sent == []
    assert not any(record.exc_info for record in caplog.records)


# A real server and real sockets ------------------------------------------------------------------


@dataclass
class Served:
    port: int
    process: subprocess.Popen[str]

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def memory(self) -> int:
        """The server's largest growth in kilobytes; it is closed by this."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        return int(self.process.stdout.readline())

    def raw(self, request: bytes) -> str:
        """What comes back for these bytes until the server closes or falls silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            parts = []
            with contextlib.suppress(OSError):  # the server may close before it has everything
                s.sendall(request)
                s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while part := s.recv(1 << 16):
                    parts.append(part)
        return b"".join(parts).decode("latin-1")


@contextlib.contextmanager
def serve(*before: str, **more: Any) -> Iterator[Served]:
    program = [sys.executable, "-W", "error", str(TESTS / "guarded.py")]
    command = [*before, *program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, **more}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Served(int(process.stdout.readline()), process)
            process.stdin.close()
            process.wait(timeout=10)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve() as found:
        yield found


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell that can set a limit")
@pytest.mark.parametrize("limit", [256, 128, 64])
def test_silent_connections_keep_nobody_away(limit: int, tmp_path: Path) -> None:
    """Three hundred connections that say nothing, or half a request, without a token: the one who
    has it was not answered any more, and the terminal got 250,000 tracebacks."""
    said = tmp_path / "said.txt"
    shell = ("sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"')
    with said.open("w") as errors, contextlib.ExitStack() as stack:
        found = stack.enter_context(serve(*shell, stderr=errors))
        for number in range(300):
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", found.port)))
            if number % 2:
                with contextlib.suppress(OSError):  # it had to give way already
                    silent.send(b"GET / HTTP/1.1\r\nHos")
        with httpx.Client(base_url=f"http://{found.host}", timeout=20) as client:
            for _ in range(3):
                answer = client.get("/", headers={"Authorization": f"Bearer {TOKEN}"})
                assert answer.text == "heard 0 at /"
    assert said.read_text() == ""


def test_a_connection_that_is_used_does_not_give_way(served: Served) -> None:
    """A browser's own connection, on which an upload goes on while others come."""
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
        head = f"POST /upload HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        own.sendall(f"{head}Content-Length: 4\r\n\r\nab".encode())
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
        own.sendall(b"cd")
        answer = b""
        while b"heard 4 at /upload" not in answer:
            part = own.recv(1000)
            assert part, answer
            answer += part


def test_a_real_request(served: Served) -> None:
    with httpx.Client(base_url=f"http://{served.host}") as client:
        first = client.get("/", params={"token": TOKEN})
        assert first.status_code == 303
        assert client.get("/").text == "heard 0 at /"  # the cookie is kept
        assert "server" not in client.get("/").headers
        assert client.head("/").text == ""
        posted = client.post("/judge", content=b"abc", headers={"origin": f"http://{served.host}"})
        assert posted.text == "heard 3 at /judge"
        foreign = client.post("/judge", content=b"abc", headers={"origin": "http://evil.example"})
        assert foreign.status_code == 403
        assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("first", "host", "statuses"),
    [
        ("GET / HTTP/1.1", "HOST", {200}),
        ("GET / HTTP/1.0", "HOST", {200}),
        ("GET / HTTP/1.0", "", {400}),
        ("GET / HTTP/1.1", "", {400}),
        ("GET / HTTP/1.1", "HOST|HOST", {400}),
        ("GET / HTTP/1.1", "HOST|evil.example", {400}),
        ("GET / HTTP/1.0", "HOST|evil.example", {400}),
        ("GET / HTTP/1.1", "evil.example", {421}),
        ("GET http://evil.example/ HTTP/1.1", "HOST", {400}),
        ("GET http://evil.example/ HTTP/1.1", "evil.example", {421}),
        ("GET //evil.example/ HTTP/1.1", "HOST", {400}),
        ("GET /static/../../etc/passwd HTTP/1.1", "HOST", {400}),
        ("GET /static/%2e%2e/%2e%2e/etc/passwd HTTP/1.1", "HOST", {400}),
        ("GET /static/..%2f..%2fetc/passwd HTTP/1.1", "HOST", {400}),
        ("GET /static/%5c..%5cx HTTP/1.1", "HOST", {400}),
        ("GET /static/%00 HTTP/1.1", "HOST", {400}),
        ("GET /%0d%0aX: HTTP/1.1", "HOST", {400}),
        ("OPTIONS * HTTP/1.1", "HOST", {405}),
        ("CONNECT evil.example:80 HTTP/1.1", "HOST", {405, 400}),
    ],
)
def test_raw_requests(served: Served, first: str, host: str, statuses: set[int]) -> None:
    """What no browser sends, written by hand and with the right token."""
    hosts = [f"Host: {h}" for h in host.replace("HOST", served.host).split("|") if h]
    lines = [first, *hosts, f"Authorization: Bearer {TOKEN}", "Connection: close", "", ""]
    answer = served.raw("\r\n".join(lines).encode())
    assert int(answer.split()[1]) in statuses
    assert "root:" not in answer


def test_a_failure_in_the_middle_ends_the_answer(served: Served) -> None:
    """The browser has to see that something is missing: the last chunk never comes."""
    lines = ["GET /half HTTP/1.1", f"Host: {served.host}", f"Authorization: Bearer {TOKEN}"]
    answer = served.raw("\r\n".join([*lines, "", ""]).encode())
    assert answer.split()[1] == "200"
    assert not answer.endswith("0\r\n\r\n")
    assert "secret" not in answer


def test_a_web_socket_request_gets_an_ordinary_refusal(served: Served) -> None:
    lines = ["GET /live HTTP/1.1", f"Host: {served.host}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13", "", ""]
    answer = served.raw("\r\n".join(lines).encode())
    assert answer.split()[1] == "403"


def test_endless_headers_end(served: Served) -> None:
    """uvicorn stops listening; whether its answer comes through is a matter of luck."""
    start = f"GET / HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    answer = served.raw(start + b"X-Long: " + b"a" * 3_000_000 + b"\r\n\r\n")
    assert answer == "" or answer.split()[1] == "400"


GIGABYTE = 1 << 30
BLOCK = bytes(1 << 20)


def _upload(host: str, token: str, declared: bool, path: str = "upload") -> tuple[int, int]:
    """Send a gigabyte as a stream: the status of the answer, and how many bytes were sent."""
    sent = 0

    def stream() -> Iterator[bytes]:
        nonlocal sent
        while sent < GIGABYTE:
            sent += len(BLOCK)
            yield BLOCK

    headers = {"authorization": f"Bearer {token}"}
    if declared:
        headers["content-length"] = str(GIGABYTE)  # else it is sent in chunks without a length
    answer = httpx.post(f"http://{host}/{path}", content=stream(), headers=headers, timeout=20)
    return answer.status_code, sent


def test_a_gigabyte_is_refused_quickly_and_costs_no_memory() -> None:
    """With and without a length, with and without the token: the sender hears why, soon, and long
    before the end of what it wanted to send."""
    with serve() as served:
        for token, status in ((TOKEN, 413), ("wrong", 403)):
            for declared in (True, False):
                before = time.monotonic()
                found, sent = _upload(served.host, token, declared)
                assert found == status
                assert sent < GIGABYTE // 8
                assert time.monotonic() - before < 10
        alive = httpx.get(f"http://{served.host}/", headers={"authorization": f"Bearer {TOKEN}"})
        assert alive.text == "heard 0 at /"
        assert 0 < served.memory() < 50_000


def test_an_answer_that_did_not_wait_for_the_body_ends_it(served: Served) -> None:
    """An app may refuse a name before it has read anything. uvicorn then listened to the rest of a
    body without a length for as long as it came."""
    status, sent = _upload(served.host, TOKEN, False, "unread")
    assert status == 200
    assert sent < GIGABYTE // 8


def test_who_waits_for_a_word_before_sending_gets_the_refusal_instead(served: Served) -> None:
    head = (
        f"POST /upload HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {GIGABYTE}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as s:
        s.sendall(head.encode())
        answer = b""
        while part := s.recv(1 << 16):  # until the server closes: we never send a byte of the body
            answer += part
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_sender_that_falls_silent_is_let_go(served: Served) -> None:
    """Refused in the middle of its body, and then it just stops: the connection still ends."""
    head = (
        f"POST /judge HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: 5000\r\n\r\nhalf of it"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as s:
        s.sendall(head.encode())
        answer = b""
        while part := s.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 413")
