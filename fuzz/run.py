"""The parent: hands out cases for some minutes, keeps tallies and findings in a work folder."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CASE_SECONDS = 120.0
TWIN_SECONDS = 300.0  # it is slow
SHRINK_SECONDS = 15.0
# Files that are kept of one kind of finding.
MOST_FILES = 2


class EndedError(Exception):
    """A worker that had to be ended, or ended by itself."""


class Worker:
    """A process that answers one line for each line, or is ended and started anew."""

    def __init__(self, **environment: str) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise EndedError("it ended by itself") from None
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = end - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.close()
                    raise EndedError(f"no answer within {seconds:g} seconds")
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    code = process.wait()
                    self.close()
                    raise EndedError(f"it ended with {code}")
                self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._rest = b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=ROOT, env={**os.environ, **_ONE_THREAD, **self._environment},
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None


_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "MKL_NUM_THREADS")
_ONE_THREAD = dict.fromkeys(_THREADS, "1")


@dataclass(slots=True)
class State:
    """What a work folder remembers."""

    folder: Path
    seed: int
    next: int = 0
    seconds: float = 0.0
    tallies: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def opened(cls, folder: Path, seed: int) -> State:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "state.json"
        state = cls(folder, seed)
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["seed"] == seed:
                state.next, state.seconds = found["next"], found["seconds"]
                state.tallies, state.kinds = Counter(found["tallies"]), Counter(found["kinds"])
                state.files = found["files"]
        return state

    def figures(self) -> dict[str, Any]:
        """What is told of a run."""
        shown = {n: c for n, c in self.tallies.items() if not n.startswith("said / ")}
        return {
            "seed": self.seed,
            "cases": self.tallies["drawn / all: cases"],
            "seconds": round(self.seconds),
            "kinds": dict(sorted(self.kinds.items())),
            "tallies": dict(sorted(shown.items())),
        }

    def save(self) -> None:
        found = {
            "seed": self.seed,
            "next": self.next,
            "seconds": self.seconds,
            "tallies": dict(sorted(self.tallies.items())),
            "kinds": dict(sorted(self.kinds.items())),
            "files": self.files,
        }
        new = self.folder / "state.json.new"
        new.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        new.replace(self.folder / "state.json")


@dataclass(slots=True)
class Run:
    """One run of the fuzzer."""

    state: State
    only: str | None = None
    shrink_seconds: float = SHRINK_SECONDS
    say: Any = print
    worker: Worker = field(default_factory=lambda: Worker(PYTHONHASHSEED="1"))
    twin: Worker = field(default_factory=lambda: Worker(PYTHONHASHSEED="2", STAIR_FUZZ_TWIN="1"))

    def go(self, seconds: float, cases: int | None = None) -> None:
        """For so long, or for so many cases."""
        state = self.state
        end = time.monotonic() + seconds
        done = 0
        try:
            while time.monotonic() < end and (cases is None or done < cases):
                started = time.monotonic()
                self.one(state.next)
                state.next += 1
                done += 1
                state.seconds += time.monotonic() - started
                if done % 20 == 0:
                    state.save()
        finally:
            state.save()
            self.worker.close()
            self.twin.close()

    def one(self, number: int) -> None:
        question = {"do": "case", "seed": self.state.seed, "number": number, "only": self.only}
        try:
            answer = self._asked_twice(question)
        except EndedError as error:
            self._keep({"check": "ends", "target": "", "kind": str(error),
                        "story": f"case {number} does not end well: {error}"}, None)  # fmt: skip
            return
        self.state.tallies.update(answer["tallies"])
        self.state.tallies["drawn / all: cases"] += 1
        for finding in answer["findings"]:
            self._keep(finding, answer["case"])
        if answer["twin"] and answer["digest"] is not None:
            self._ask_the_twin(number, answer["digest"])

    def _asked_twice(self, question: dict[str, Any]) -> dict[str, Any]:
        """A machine that is busy with other things may keep a worker waiting; what never ends, or
        ends its process, does so again."""
        try:
            return self.worker.ask(question, CASE_SECONDS)
        except EndedError:
            self.state.tallies["drawn / all: asked twice"] += 1
            return self.worker.ask(question, CASE_SECONDS)

    def _ask_the_twin(self, number: int, digest: str) -> None:
        question = {"do": "digest", "seed": self.state.seed, "number": number}
        try:
            other = self.twin.ask(question, TWIN_SECONDS)["digest"]
        except EndedError as error:
            other = f"the twin: {error}"
        self.state.tallies["twin / hash seed, threads, kernel: compared"] += 1
        if other != digest:
            self._keep({"check": "twin", "target": "", "kind": "differs", "expected": digest,
                        "got": other, "story": f"case {number} of seed {self.state.seed}: other "
                        "rules with another hash seed, thread count and kernel"}, None)  # fmt: skip

    def _keep(self, finding: dict[str, Any], case: str | None) -> None:
        """A file for a finding, made as small as it gets; few of each kind."""
        state = self.state
        kind = f"{finding['check']} | {finding['target']} | {finding['kind']}"
        state.kinds[kind] += 1
        if state.kinds[kind] > MOST_FILES:
            return
        text = None
        if case is not None and self.shrink_seconds:
            key = [finding["check"], finding["target"], finding["kind"]]
            question = {"do": "shrink", "case": case, "key": key, "seconds": self.shrink_seconds}
            try:
                answer = self.worker.ask(question, self.shrink_seconds + CASE_SECONDS)
                if answer["finding"] is not None:
                    text, finding = answer["case"], answer["finding"]
            except EndedError:
                pass
        if text is None and case is not None:
            document = json.loads(case)
            document["finding"] = finding
            text = json.dumps(document) + "\n"
        if text is None:
            text = json.dumps({"finding": finding}) + "\n"
        words = "".join(c if c.isalnum() else "-" for c in kind)[:80].strip("-")
        path = state.folder / f"{words}-{state.next}.json"
        path.write_text(text, encoding="utf-8")
        state.files[path.name] = f"{kind} | {finding['story']}"[:500]
        self.say(f"{state.next}: {kind} | {finding['story']}"[:300])
