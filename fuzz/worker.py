"""A process that looks at cases, one at a time, for a parent that ends it when it takes too long.

It reads a line of JSON for each case and answers with one. Whatever the library prints on standard
output meanwhile is a finding of its own.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz import library
from fuzz.case import Case, case_from_json, case_to_json
from fuzz.checks import Checker
from fuzz.containers import NoSuchTableError, built
from fuzz.draw import draw_case
from fuzz.result import Finding, Result
from fuzz.shrink import shrunk
from fuzz.targets import Target, targets
from stair import StairError

# A table of 400 rows needs no more; libraries reserve a good part of it without using it.
MOST_MEMORY = 12 << 30
# Of the processor's time, for one question.
MOST_SECONDS = 120


def look_at(
    case: Case, folder: Path, endings: dict[str, Target], only: str | None = None
) -> Result:
    """All checks of a case, or one of them."""
    try:
        return Checker(case, folder, endings, only).run()
    except Exception as error:
        result = Result()
        result.found(Finding("fuzzer", "", type(error).__name__, "the fuzzer itself failed", "",
                             _with_place(error)))  # fmt: skip
        return result


def _with_place(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error))[-1500:]


def fails_alike(
    case: Case, folder: Path, endings: dict[str, Target], key: tuple[str, str, str]
) -> bool:
    only = None if key[0] in ("quiet", "sentence", "containers", "predict", "learn") else key[0]
    return any(f.key == key for f in look_at(case, folder, endings, only).findings)


def rules_digest(case: Case, folder: Path) -> str | None:
    """The rules of a case alone; None where there are none."""
    try:
        data, reading = built(case.table, folder)
        return library.digest_of(library.document_of(library.learn(case, data, reading)))
    except (StairError, NoSuchTableError):
        return None


def become_a_twin() -> None:
    """The slow twins in place of the kernels, and another number of threads."""
    from stair.engines import counting, memory
    from stair.learn.distill import cover

    cover.KERNELS["compiled"] = cover.KERNELS["numpy"]
    for module in (counting, memory):
        module._compiled = None
        module.n_cpus = lambda: 3


class _Printed:
    """What anything in this process writes to standard output, however it does."""

    def __init__(self) -> None:
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 as long as the process lives
        os.dup2(self._file.fileno(), 1)

    def taken(self) -> bytes:
        sys.stdout.flush()
        self._file.seek(0)
        text = self._file.read()
        self._file.seek(0)
        self._file.truncate()
        return text


def _answer(
    asked: dict[str, Any], folder: Path, endings: dict[str, Target], printed: _Printed
) -> dict[str, Any]:
    if asked["do"] == "digest":
        return {"digest": rules_digest(draw_case(asked["seed"], asked["number"]), folder)}
    if asked["do"] == "shrink":
        case, _ = case_from_json(asked["case"])
        key: Any = tuple(asked["key"])
        small = shrunk(
            case, lambda c: fails_alike(c, folder, endings, key), float(asked["seconds"])
        )
        again = [f for f in look_at(small, folder, endings).findings if f.key == key]
        found = again[0].as_dict() if again else None
        return {"case": case_to_json(small, found), "finding": found}
    if asked["do"] == "case":
        case = draw_case(asked["seed"], asked["number"])
    else:
        case, _ = case_from_json(asked["case"])
    started = time.monotonic()
    result = look_at(case, folder, endings, asked.get("only"))
    text = printed.taken()
    if text:
        result.found(Finding("quiet", "stdout", "printed", "something is printed on standard "
                             "output", "", text[:300].decode(errors="replace")))  # fmt: skip
    return {
        "tallies": dict(result.tallies),
        "findings": [f.as_dict() for f in result.findings],
        "digest": result.digest,
        "twin": "twin" in case.extras,
        "case": case_to_json(case) if result.findings else None,
        "seconds": time.monotonic() - started,
    }


def begin_to_count() -> None:
    """From now on the processor's time for one question is left, and then this process ends."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + MOST_SECONDS, hard))


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    printed = _Printed()
    if os.environ.get("STAIR_FUZZ_TWIN"):
        become_a_twin()
    with tempfile.TemporaryDirectory() as name, targets(Path(name)) as endings:
        for line in sys.stdin:
            begin_to_count()
            answer = _answer(json.loads(line), Path(name), endings, printed)
            printed.answers.write(json.dumps(answer) + "\n")
            printed.answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
