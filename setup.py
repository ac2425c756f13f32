"""The compiled kernels, the one thing that pyproject.toml cannot say.

They are optional: where there is no C compiler the install goes on without them and the
numpy twins of equal results serve.
"""

import sys

from setuptools import Extension, setup

# Fused multiply-add would round differently from numpy, and the twins must agree to the bit.
FLAGS = [] if sys.platform == "win32" else ["-O3", "-ffp-contract=off"]

setup(
    ext_modules=[
        Extension(
            name,
            [f"src/{name.replace('.', '/')}.pyx"],
            extra_compile_args=FLAGS,
            optional=True,
        )
        for name in ("stair.engines._count", "stair.engines._route", "stair.learn.distill._boxes")
    ]
)
