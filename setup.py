"""The compiled kernels, the one thing that pyproject.toml cannot say.

They are optional: where there is no C compiler the install goes on without them and the
numpy twins of equal results serve. They keep to the part of Python's C interface that stays
(3.11 on), so one wheel for each platform serves every later version; `python -m
benchmarks.limited_api` measures what that costs.
"""

import sys
import sysconfig

from setuptools import Extension, setup

KERNELS = (
    "stair.engines._count",
    "stair.engines._route",
    "stair.learn.distill._boxes",
    "stair.rules._match",
)
# Fused multiply-add would round differently from numpy, and the twins must agree to the bit.
FLAGS = [] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off"]
# A free-threaded Python has no such lasting part yet.
IS_LASTING = not sysconfig.get_config_var("Py_GIL_DISABLED")


def extensions(is_lasting=IS_LASTING):
    return [
        Extension(
            name,
            [f"src/{name.replace('.', '/')}.pyx"],
            extra_compile_args=FLAGS,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if is_lasting else [],
            py_limited_api=is_lasting,
            optional=True,
        )
        for name in KERNELS
    ]


if __name__ == "__main__":
    setup(
        ext_modules=extensions(),
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_LASTING else {},
    )
