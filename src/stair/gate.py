"""The command's gate: which files it reads and writes, what it says, and how it ends."""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import typer

from stair.errors import StairError, in_the_command, visible

BAD_INPUT: Final = 2
_USAGE: Final[Any] = typer.BadParameter.__base__  # of whichever click typer brings along


def share_or_number(text: str) -> int | float:
    """A whole number as an int, anything else as a float: "1" is one row, "0.1" a tenth."""
    return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)


def partitions(given: str) -> Any:
    """A whole number of them, or the word auto."""
    if given == "auto" or given.isdecimal():
        return given if given == "auto" else int(given)
    raise StairError(f"--partitions {given}; expected a whole number or auto")


def kinds(given: Sequence[str]) -> dict[str, str]:
    """COLUMN=KIND, each as one entry."""
    found = {}
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals or not name:
            raise StairError(f"--kind {each}; expected COLUMN=KIND, as in --kind zip=category")
        found[name] = kind
    return found


# --- files ------------------------------------------------------------------------------------

_PLAIN = (".txt",)
_ENDINGS: Final[dict[str, tuple[str, ...]]] = {
    "json": (".json", *_PLAIN),
    "sql": (".sql", *_PLAIN),
    "html": (".html", ".htm"),
    "text": (*_PLAIN, ".md"),
    "markdown": (".md", *_PLAIN),
    "pandas": (".py", *_PLAIN),
    "polars": (".py", *_PLAIN),
    "python": (".py", *_PLAIN),
    "onnx": (".onnx",),
    "pmml": (".pmml", ".xml"),
    "great-expectations": (".json", *_PLAIN),
    "soda": (".yml", ".yaml", *_PLAIN),
    "sigma": (".yml", ".yaml", *_PLAIN),
    "junit": (".xml",),
    "review": (".db", ".sqlite", ".sqlite3"),
}
"""The endings that suit each kind of output. A table's are known to `stair.data`."""
_OTHERS: Final = (".gz", ".zip", ".bz2", ".xz", ".zst", ".xlsx", ".xls", ".parquet", ".pq", ".csv",
                  ".tsv", ".jsonl", ".ndjson", ".duckdb", ".ddb", ".pdf")  # fmt: skip
_KNOWN: Final = frozenset(_OTHERS).union(*_ENDINGS.values())


def check_files(reads: Sequence[Path | None], writes: Sequence[tuple[Path | None, str]]) -> None:
    """Before any work: each output (a path and its kind) can be written, is named as what it will
    be, and is neither an input nor another output, by whatever name."""
    _check_streams(reads, writes)
    taken: list[tuple[Path, str]] = []
    outputs = [(path, kind) for path, kind in writes if path is not None and path != DASH]
    if outputs:
        from stair.data.writing import is_device

        taken = [(file, "read") for path in reads if path is not None for file in _files(path)]
    for path, kind in outputs:
        if is_device(path.expanduser()):
            continue  # nothing is replaced there, and it has no format
        try:
            target = path.expanduser().resolve()
            _check_place(path, target)
            for other, use in taken:
                if _same(other, target):
                    raise StairError(
                        f"{path} would be written, but is also to be {use}; name another file"
                    )
            _check_ending(path, kind)
        except (OSError, RuntimeError) as error:  # a name too long, links in a circle
            why = getattr(error, "strerror", None) or "it is a link to itself"
            raise StairError(f"cannot write {path}: {why.lower()}") from None
        taken.append((target, "written"))


def _files(path: Path) -> list[Path]:
    """The files that an input means: one, or those of a folder or a pattern."""
    with contextlib.suppress(OSError, RuntimeError, StairError):
        if path.expanduser().is_file():
            return [path.expanduser().resolve()]
        from stair.data.stream import files_of

        return [Path(part.path) for part in files_of(path)]
    return []  # whoever reads it will say what is wrong


def is_same(one: Path, other: Path) -> bool:
    """Whether two names are of one file that is there."""
    with contextlib.suppress(OSError, RuntimeError):
        return DASH not in (one, other) and one.expanduser().samefile(other.expanduser())
    return False


def _same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        if one.samefile(other):
            return True
    return _folded(one) == _folded(other)


def _folded(path: Path) -> str:
    """As a file system sees a name that does not tell cases and accents apart."""
    return unicodedata.normalize("NFC", str(path)).casefold()


def _check_place(path: Path, target: Path) -> None:
    if target.is_dir():
        raise StairError(f"{path} is a folder; expected the name of a file to write")
    if not target.parent.is_dir():
        raise StairError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise StairError(f"cannot write {path}: the folder {path.parent} is not writable")


def _check_ending(path: Path, kind: str) -> None:
    if kind == "table":
        from stair.data import written_as

        written_as(path)
        return
    ending = path.suffix.lower()
    if ending in _KNOWN and ending not in _ENDINGS[kind]:
        raise StairError(
            f"{path} is named {ending}, but {kind} would be written; name it {_ENDINGS[kind][0]}"
        )


# --- standard input and output ----------------------------------------------------------------

DASH: Final = Path("-")
"""Standard input in place of a file to read, standard output in place of one to write."""


class _Piped:
    """What one command reads from standard input and writes to standard output, as files: readers
    look at a table more than once, and writers give all of it or nothing."""

    def __init__(self) -> None:
        self.is_output = False  # then nothing else is said on standard output
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._written: Path | None = None

    def file(self, name: str) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="stair-", ignore_cleanup_errors=True)
        return Path(self._folder.name) / name

    def take_in(self) -> Path:
        from stair.data.text import PIPED

        spooled = self.file(PIPED)
        stream: Any = sys.stdin.buffer
        try:
            with spooled.open("wb") as file:
                while block := stream.read1(1 << 20):  # unlike read: one Ctrl-D is the end
                    file.write(block)
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
            raise StairError(
                f"cannot keep standard input in the folder {spooled.parent.parent}: {why}"
            ) from None
        return spooled

    def give_out(self, kind: str) -> Path:
        self._written = self.file("standard output.csv" if kind == "table" else "standard output")
        return self._written

    def hand_over(self) -> None:
        """What was written, byte by byte; only a terminal gets it as it can be shown."""
        if self._written is None:
            return
        with self._written.open("rb") as file, _output_in_words():
            if sys.stdout.isatty():
                text = file.read().decode("utf-8", "backslashreplace")
                sys.stdout.write(visible(text, lines=True))
            else:
                shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
            sys.stdout.flush()

    def close(self) -> None:
        """Leave nothing behind, neither files nor what was asked for."""
        folder = self._folder
        self.is_output, self._folder, self._written = False, None, None
        if folder is not None:
            folder.cleanup()


_piped = _Piped()


def _check_streams(reads: Sequence[Path | None], writes: Sequence[tuple[Path | None, str]]) -> None:
    piped = [kind for path, kind in writes if path == DASH]
    for what, n_given in (("input", list(reads).count(DASH)), ("output", len(piped))):
        if n_given > 1:
            raise StairError(
                f"- is standard {what}, which is there once; name a file in place of one of them"
            )
    if "review" in piped:
        raise StairError("- is standard output, where no verdicts can be kept; name a file")
    _piped.is_output = bool(piped)


def check_folder(path: Path | None) -> None:
    """Refuse standard output where a folder is to be written."""
    if path == DASH:
        raise StairError("- is standard output; expected the name of a folder")


def to_read(path: Path) -> Path:
    """The file to read: as it was given, or one that holds all of standard input."""
    return _piped.take_in() if path == DASH else path


def to_write(path: Path, kind: str) -> Path:
    """The file to write: as it was given, or one that goes to standard output at the end."""
    return _piped.give_out(kind) if path == DASH else path


def speech() -> TextIO:
    """The stream for people: not the one that a program is waiting at for an output."""
    return sys.stderr if _piped.is_output else sys.stdout


# --- text -------------------------------------------------------------------------------------

_IN_ASCII: Final = {
    "≤": "<=", "≥": ">=", "≠": "!=", "→": "->", "…": "...", "–": "-", "—": "-", "−": "-",
    "×": "x", "∈": "in", "·": "*", "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ",
}  # fmt: skip


def width() -> int:
    """How many characters a line has room for."""
    return shutil.get_terminal_size((80, 24)).columns if speech().isatty() else 80


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """For an encoding that cannot say it: a plain sign that means the same, or an escape."""
    assert isinstance(error, UnicodeEncodeError)
    gone = error.object[error.start : error.end]
    plain = (_IN_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in gone)
    return "".join(plain), error.end


codecs.register_error("stair", _in_ascii)


def say(text: str, *, end: str = "\n", is_error: bool = False, is_shown_so: bool = False) -> None:
    """Text for a person, without anything in it that a terminal would obey.

    `is_shown_so`: it was made visible before, and the escapes in it are our own colours.
    """
    stream = sys.stderr if is_error else speech()
    with _errors_unheard() if stream is sys.stderr else _output_in_words():
        stream.write((text if is_shown_so else visible(text, lines=True)) + end)
        stream.flush()


@contextlib.contextmanager
def _errors_unheard() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):
        _silence(sys.stderr)


@contextlib.contextmanager
def _output_in_words() -> Iterator[None]:
    """A reader that goes away is no trouble; all else that keeps us from writing is."""
    try:
        yield
    except BrokenPipeError:
        _silence(sys.stdout)
    except (OSError, ValueError) as error:
        _silence(sys.stdout)
        why = getattr(error, "strerror", None) or "it is closed"
        raise StairError(f"cannot write to standard output: {why.lower()}") from None


def hand_over(content: str) -> None:
    """Content for a program, exactly as it is; only a terminal gets it as it can be shown."""
    say(content, end="", is_shown_so=not sys.stdout.isatty())


def _silence(stream: TextIO) -> None:
    """Send what is still in its buffer nowhere, or Python complains about it at the end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _open_streams() -> None:
    """Streams that are closed lead nowhere (else the next file opened would be one of them), and
    those with a small alphabet spell out what it lacks."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="stair")


# --- the end ----------------------------------------------------------------------------------


def run(command: Callable[[], int | None]) -> int:
    """Run a command to an orderly end and give its exit code: bad input is one sentence, and a
    signal lets go of everything that is open first."""
    _open_streams()
    with in_the_command(), _signals() as received:
        try:
            with contextlib.closing(_piped):
                code = command() or 0
                _piped.hand_over()
            sys.stdout.flush()
        except StairError as error:
            code = _refused(str(error))
        except _USAGE as error:
            code = _refused(_usage(error))
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        except BrokenPipeError:  # whoever read our output went away
            code = 0
            _silence(sys.stdout)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or "not enough memory"
            code = _refused(": ".join(filter(None, [getattr(error, "filename", None), why])))
            _silence(sys.stdout)
        except BaseException:
            if not received:  # else a library made something of its own of the signal
                raise
    if received:
        code = 128 + received[0]
    if code == 128 + signal.SIGINT or received:
        say("stair: stopped; nothing was left half-written", is_error=True)
    return code


def _refused(message: str) -> int:
    say(f"stair: {visible(message)}", is_error=True)
    return BAD_INPUT


def _usage(error: Any) -> str:
    """What is wrong with the command line, and where it is said how it goes."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "stair"
    return f"{error.format_message().rstrip('.')}; see {path} --help"


_keepers: list[Callable[[], bool]] = []


@contextlib.contextmanager
def keeping(keep: Callable[[], bool]) -> Iterator[None]:
    """While it lasts Ctrl-C asks `keep` first: where it has something to keep, work goes on to the
    output with that, and the next Ctrl-C ends it."""
    _keepers.append(keep)
    try:
        yield
    finally:
        _keepers.pop()


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that ask for an end do it as Ctrl-C does; those that came, in order."""
    received: list[int] = []

    def end(number: int, _: object) -> None:
        if number == signal.SIGINT and _keepers and _keepers[-1]():
            return
        received.append(number)
        if len(received) == 1:  # a second one must not disturb the tidying up
            raise KeyboardInterrupt

    names = ("SIGINT", "SIGTERM", "SIGHUP") if _is_main_thread() else ()
    asked = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in asked}
    for number, old in before.items():
        if old is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, end)
    try:
        yield received
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
