"""Counts on a GPU: codes that live there, the kernels that go over them, and their slow twins."""
