"""What can be wrong with a GPU is said in one sentence, and nothing is looked for before."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import stair
from stair.gpu import cuda
from stair.gpu.cuda import on_device


class Failure(Exception):  # noqa: N818 - CuPy's own
    """What CuPy raises."""


class NoRoom(Exception):  # noqa: N818 - CuPy's own
    """What it raises where there is no memory."""


def _cupy(n_devices: int | Exception, capability: tuple[int, int] = (9, 0)) -> Any:
    """As much of CuPy as is asked before the first kernel."""

    def count() -> int:
        if isinstance(n_devices, Exception):
            raise n_devices
        return n_devices

    @contextlib.contextmanager
    def device(_: int) -> Iterator[None]:
        yield

    about = {"major": capability[0], "minor": capability[1], "name": b"a GPU",
             "multiProcessorCount": 2, "sharedMemPerBlockOptin": 99_000}  # fmt: skip
    runtime = SimpleNamespace(
        getDeviceCount=count, getDeviceProperties=lambda _: about, CUDARuntimeError=Failure,
        memGetInfo=lambda: (10**9, 2 * 10**9),
    )  # fmt: skip
    memory = SimpleNamespace(OutOfMemoryError=NoRoom)
    return SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, Device=device, memory=memory),
        RawModule=lambda **_: SimpleNamespace(),
    )


@pytest.mark.parametrize(
    ("cupy", "why"),
    [
        (None, r"needs CuPy: pip install 'stair\[cuda\]'"),
        (_cupy(Failure("cudaErrorNoDevice: no CUDA-capable device")), "no NVIDIA GPU answers"),
        (_cupy(Failure("cudaErrorInsufficientDriver: CUDA driver version is insufficient")),
         "no NVIDIA driver, or it is older"),
        (_cupy(1), "device=3; this machine has 1|GPU device 3"),
        (_cupy(5, (6, 1)), "compute capability 6.1; expected at least 7.0"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, cupy: Any, why: str) -> None:
    monkeypatch.setattr(cuda, "optional", lambda _: cupy)
    with pytest.raises(stair.StairError, match=why):
        stair.summarize({"x": [1, 2]}, labels=[0, 1], engine=stair.Cuda(device=3), method="stair")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NoRoom("Out of memory allocating 5 bytes"), "no more memory .*set a limit with memory"),
        (Failure("cudaErrorIllegalAddress: an illegal memory access"), "the GPU failed: cudaErr"),
    ],
)
def test_what_goes_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    cupy = _cupy(1)
    monkeypatch.setattr(cuda, "optional", lambda _: cupy)
    with pytest.raises(stair.StairError, match=why), on_device(0) as device:
        assert device.name == "a GPU"
        assert device.room == 10**9
        raise error
    cuda._opened.clear()


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, stair, stair.summary; stair.Cuda(); print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
