"""The compiled kernel, the one thing that pyproject.toml cannot say.

It is optional: where there is no C compiler the install goes on without it and the
numpy twin of equal results serves.
"""

import sys

from setuptools import Extension, setup

# Fused multiply-add would round differently from numpy, and the twin must agree to the bit.
FLAGS = [] if sys.platform == "win32" else ["-O3", "-ffp-contract=off"]

setup(
    ext_modules=[
        Extension(
            "stair.engines._count",
            ["src/stair/engines/_count.pyx"],
            extra_compile_args=FLAGS,
            optional=True,
        )
    ]
)
