"""The kernels of a GPU as they are, run by threads of the processor: a C++ compiler takes them for
C++ once a few words are explained to it. So their loops, barriers and sums are tried anywhere."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stair.gpu.cuda import Launches
from stair.gpu.kernels import SOURCE
from stair.gpu.twin import Far

COMPILER = shutil.which("g++") or shutil.which("clang++")
PREFIX = r"""
#include <barrier>
#include <cmath>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>
struct Three { int x, y, z; };
struct int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
static ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static thread_local Three threadIdx, blockIdx;
static Three blockDim, gridDim;
static unsigned char* near_memory;
static std::barrier<>* together;
#define __global__
#define __device__
#define __launch_bounds__(...)
static unsigned __byte_perm(unsigned x, unsigned y, unsigned pick) {
    unsigned char bytes[8];
    __builtin_memcpy(bytes, &x, 4);
    __builtin_memcpy(bytes + 4, &y, 4);
    unsigned found = 0;
    for (int k = 0; k < 4; k++) found |= (unsigned)bytes[pick >> 4 * k & 7] << 8 * k;
    return found;
}
#define DYNAMIC(T, name) T* name = (T*)near_memory
static void __syncthreads() { together->arrive_and_wait(); }
template <typename T> T atomicAdd(T* at, T more) {
    return __atomic_fetch_add(at, more, __ATOMIC_RELAXED);
}
"""
SUFFIX = r"""
template <typename... A, size_t... I>
void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(A*)args[I]...);
}
template <typename... A>
void launch(void (*kernel)(A...), int blocks, int threads, int near, void** args) {
    std::vector<unsigned char> memory(near + 64);
    near_memory = memory.data() + (64 - (size_t)memory.data() % 64);
    std::barrier<> all(threads);
    together = &all;
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
        pool.emplace_back([=, &all] {
            threadIdx = {t, 0, 0};
            for (int b = 0; b < blocks; b++) {
                blockIdx = {b, 0, 0};
                call(kernel, args, std::index_sequence_for<A...>{});
                all.arrive_and_wait();
                if (t == 0) for (int k = 0; k < near; k++) near_memory[k] = 0xAB;  // nothing stays
                all.arrive_and_wait();
            }
        });
    for (auto& each : pool) each.join();
}
"""


def compiled(folder: Path) -> Callable[[str], Any]:
    """The kernels by their names, each launched as CuPy does."""
    names = re.findall(r'extern "C" __global__ void (\w+)\(', SOURCE)
    made = re.findall(r"^(?:TALLY|TAKE|ENCODE)\((\w+),", SOURCE, re.M)
    names = [name for name in names if name not in ("NAME", "__launch_bounds__")] + made
    doors = "".join(
        f'extern "C" void launch_{name}(int blocks, int threads, int near, void** args)\n'
        f"{{ launch({name}, blocks, threads, near, args); }}\n"
        for name in names
    )
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(PREFIX + SOURCE + SUFFIX + doors, encoding="utf-8")
    assert COMPILER is not None
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-w"]
    subprocess.run([COMPILER, *flags, str(source), "-o", str(library)], check=True)
    held = ctypes.CDLL(str(library))

    def kernel(name: str) -> Any:
        door = getattr(held, f"launch_{name}")

        def launch(
            grid: tuple[int], block: tuple[int], args: tuple[Any, ...], shared_mem: int
        ) -> None:
            values = [
                ctypes.c_void_p(a.ctypes.data)
                if isinstance(a, np.ndarray)
                else np.ctypeslib.as_ctypes_type(a.dtype)(a.item())
                for a in args
            ]
            places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
            door(grid[0], block[0], shared_mem, places)

        return launch

    return kernel


class ByThreads(Launches):
    """A device whose kernels are those of a GPU."""

    def __init__(self, folder: Path, near: int = 100_000) -> None:
        super().__init__(
            "threads", np, compiled(folder), lambda array: int(array.ctypes.data),
            room=1 << 30, near=near, blocks=3, threads=40, counting=33,
        )  # fmt: skip

    def taken(self, data: object) -> Any:
        return data.values if isinstance(data, Far) else None

    def here(self, array: Any) -> Any:
        return np.array(array)

    def there(self, array: Any) -> Any:
        return np.array(array)


@pytest.fixture(scope="session")
def by_threads(tmp_path_factory: pytest.TempPathFactory) -> ByThreads:
    """The kernels, compiled once."""
    if COMPILER is None:
        pytest.skip("no C++ compiler is there, which runs the kernels by threads")
    return ByThreads(tmp_path_factory.mktemp("kernels"))
