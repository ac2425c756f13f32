"""The command `stair` in processes of their own, forked from one that has its imports.

Each is a real process with real streams, a working folder, an environment, signals and an exit
code; only the seconds in which Python imports the same libraries again are saved. What is about
the start itself (`python -m stair`, a shell's redirections, a terminal) starts a new Python.

    python tests/command.py SOCKET [bare]     waits there for commands, until its input ends

`bare` has none of the packages of the extras: a command that should have some gets them then.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import io
import json
import locale
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

# Whatever a command may import late: without it a test takes longer, and nothing else.
HEAVY = [
    "duckdb", "jinja2", "numpy", "openpyxl", "pandas", "pyarrow.csv", "pyarrow.parquet",
    "markdown_it", "scipy.io", "scipy.optimize", "sklearn.cluster", "sklearn.ensemble",
    "sklearn.feature_extraction.text", "sklearn.feature_selection", "sklearn.neighbors",
    "sklearn.tree", "sqlite3", "stair.apply", "stair.cli", "stair.engines.memory",
    "stair.estimators", "stair.export.sql", "stair.operation.compare", "stair.operation.update",
    "stair.review.serve", "stair.summary", "typer._adapters", "typer.rich_utils",
]  # fmt: skip


# The packages of each extra, as Python imports them.
EXTRAS = {
    "files": "duckdb pyarrow", "excel": "openpyxl", "pyod": "pyod", "plot": "matplotlib",
    "sql": "sqlglot", "onnx": "onnx", "scale": "duckdb pyarrow", "dask": "dask distributed",
    "review": "starlette uvicorn pyarrow duckdb", "test": "pandas polars",
}  # fmt: skip


class Process:
    """A command that runs: the part of `subprocess.Popen` that the tests use."""

    def __init__(self, given: socket.socket, streams: list[IO[bytes] | None]) -> None:
        self._told = given.makefile("r", encoding="utf-8")
        self._connection = given
        self.stdin, self.stdout, self.stderr = streams
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = int(self._told.readline())
            except TimeoutError:
                raise subprocess.TimeoutExpired("stair", timeout or 0.0) from None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """All that it says on both streams, fed with what is given; then it has ended."""
        found: dict[int, bytes] = {}

        def drain(number: int, stream: IO[bytes]) -> None:
            found[number] = stream.read()

        readers = [
            threading.Thread(target=drain, args=(number, stream))
            for number, stream in ((1, self.stdout), (2, self.stderr))
            if stream is not None
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(given)
        for reader in readers:
            reader.join()
        self.wait()
        return found.get(1, b""), found.get(2, b"")

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is not None:
            self.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Read and write no more, and wait for its end."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.wait()
        self._told.close()
        self._connection.close()


class _Forker:
    """The process that has the imports: started for the first command, one for all tests here."""

    def __init__(self, kind: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="stair-command-")
        self._place = str(Path(self._folder.name) / "commands")
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._place, kind], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self.close()
            raise AssertionError("nothing to fork from: it said on standard error why")
        atexit.register(self.close)

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._place)
        return connection


_forkers: dict[str, _Forker] = {}


def start(
    *words: object, cwd: Path | None = None, environment: dict[str, str] | None = None,
    stdin: bool = False, extras: Collection[str] | None = None, module: str = "",
) -> Process:  # fmt: skip
    """The command with these words; both its outputs are pipes, and its input too if asked for.

    Without `extras` there are all packages. `module` is run in place of the command, and warnings
    are errors there.
    """
    kind = "all" if extras is None else "bare"
    if kind not in _forkers:
        _forkers[kind] = _Forker(kind)
    order = {
        "module": module,
        "packages": [name for extra in extras or () for name in EXTRAS[extra].split()],
        "words": [os.fsdecode(word) if isinstance(word, Path) else str(word) for word in words],
        "cwd": str(cwd or Path.cwd()),
        "environment": environment if environment is not None else dict(os.environ),
    }
    theirs, ours = [], []
    for number in range(3):
        if number == 0 and not stdin:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
            ours.append(None)
            continue
        reading, writing = os.pipe()
        theirs.append(writing if number else reading)
        mine = reading if number else writing
        ours.append(os.fdopen(mine, "rb" if number else "wb"))
    connection = _forkers[kind].connect()
    sent = json.dumps(order).encode()
    streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))]
    connection.sendmsg([len(sent).to_bytes(8)], streams)
    connection.sendall(sent)
    for number in theirs:
        os.close(number)
    return Process(connection, ours)


def run(
    *words: object, cwd: Path | None = None, given: bytes | None = None, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    """The command to its end, in 80 columns without colours unless the settings say otherwise."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **settings}
    with start(*words, cwd=cwd, environment=environment, stdin=given is not None) as process:
        said, errors = process.communicate(given or b"")
    assert process.returncode is not None
    return subprocess.CompletedProcess(["stair", *words], process.returncode, said, errors)


# In the process that has the imports ------------------------------------------------------------


class _Nothing:
    """Finds that some packages are not there."""

    def __init__(self) -> None:
        self.missing: set[str] = set()

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in self.missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    nothing = _Nothing()
    if sys.argv[2] == "bare":
        nothing.missing = {name for names in EXTRAS.values() for name in names.split()}
        sys.meta_path.insert(0, nothing)
    for name in HEAVY:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.freeze()  # so that a fork does not copy what it never changes
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place.bind(sys.argv[1])
    place.listen(64)
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    print("ready", flush=True)
    threading.Thread(target=_end_with_input, daemon=True).start()
    while True:
        connection, _ = place.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            place.close()
            _serve(connection, nothing)
        connection.close()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def _reap(*_: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(connection: socket.socket, nothing: _Nothing) -> None:
    """Start what was asked for and tell its number, then how it ended."""
    numbers = array.array("i")
    head, [(_, _, sent)], _, _ = connection.recvmsg(8, socket.CMSG_SPACE(3 * numbers.itemsize))
    numbers.frombytes(sent)
    order = json.loads(b"".join(_exactly(connection, int.from_bytes(head))))
    child = os.fork()
    if child == 0:
        connection.close()
        nothing.missing -= set(order["packages"])
        _become(order, list(numbers))
    for number in numbers:
        os.close(number)
    connection.sendall(b"%d\n" % child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % code)
    os._exit(0)


def _exactly(connection: socket.socket, n_bytes: int) -> Iterator[bytes]:
    while n_bytes:
        block = connection.recv(n_bytes)
        n_bytes -= len(block)
        yield block


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Be a Python that was just started with these streams, in this folder and environment."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    tempfile.tempdir = None
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    encoding = encoding or ("utf-8" if os.environ.get("PYTHONUTF8") == "1" else "")
    encoding = encoding or locale.getencoding()
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedReader(io.FileIO(number, "r", closefd=False)) if number == 0
            else io.BufferedWriter(io.FileIO(number, "w", closefd=False)),
            encoding=encoding, errors="backslashreplace" if number == 2 else errors or "strict",
            line_buffering=number == 2,
        )
        for number in range(3)
    )  # fmt: skip
    sys.argv = ["stair", *order["words"]]
    code = 1
    try:
        if order["module"]:
            warnings.simplefilter("error")
            sys.path.insert(0, order["cwd"])
            runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        else:
            importlib.import_module("stair.cli").main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = 120
    os._exit(code)


if __name__ == "__main__":
    main()
