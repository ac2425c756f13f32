"""Review pages in processes of their own: by the command, or forked from one that has all imports.

python tests/review_server.py TABLE DB     a server for each line on stdin, "PORT PID" a line
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from command import start

TOKEN = "a-token-for-the-tests"


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Client:
    """A program that knows the token; each instance is another person."""

    port: int
    who: str = "tester"

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, **headers)

    def post(self, path: str, fields: Mapping[str, object] | None = None, **headers: str) -> Answer:
        return self.ask("POST", path, urllib.parse.urlencode(fields or {}, doseq=True), **headers)

    def ask(self, method: str, path: str, body: str | bytes | None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers={
                "Authorization": f"Bearer {TOKEN}", "Cookie": f"stair-who={self.who}",
                **({"Content-Type": "application/x-www-form-urlencoded"} if body else {}),
                **{k.replace("_", "-"): v for k, v in headers.items()},
            })  # fmt: skip
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        text = content.decode("utf-8", "replace")
        return Answer(answer.status, text, dict(answer.headers), content)

    def groups(self) -> list[str]:
        """The groups in the list, in their order."""
        return re.findall(r'id="item-([0-9a-f]+)"', self.get("/").text)

    def wait(self) -> str:
        """Until nothing is being worked on; what the page says about the end of it."""
        for _ in range(2400):
            text = self.get("/job").text
            if 'class="job"' not in text:
                return text
            time.sleep(0.025)
        raise AssertionError("the work did not end within a minute")


@contextlib.contextmanager
def served(*arguments: object, cwd: Path | None = None) -> Iterator[Client]:
    """The command itself, until the end of the block."""
    words = ["review", *arguments, "--no-browser", "--port", "0", "--token", TOKEN]
    with start(*words, cwd=cwd) as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().decode()
        found = re.search(r":(\d+)/", address)
        if found is None:
            raise AssertionError(process.stderr.read().decode() or address)
        try:
            yield Client(int(found[1]))
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.send_signal(signal.SIGKILL)


def main() -> None:
    """Imports once; then a process of its own for every server that is asked for."""
    from stair.review.desk import Desk, Opening
    from stair.review.serve import serve
    from stair.summary import summarize

    table, db = Path(sys.argv[1]), Path(sys.argv[2])
    summarize({"x": [1.0, 2.0], "y": [0, 1]}, labels="y", method="stair")  # the lazy imports too
    for _ in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            desk = Desk(db=db)
            desk.open(Opening(table, label="y", method="stair"))
            with os.fdopen(writing, "w") as answer:

                def say(text: str, answer: object = answer) -> None:
                    print(text, file=answer, flush=True)  # type: ignore[call-overload]

                serve(desk, token=TOKEN, most_upload=1000, opened=False, say=say)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            found = re.search(r":(\d+)/", said.readline())
        print(found[1] if found else 0, child, flush=True)


if __name__ == "__main__":
    main()
