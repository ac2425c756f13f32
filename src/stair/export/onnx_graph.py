"""A graph of ONNX that grows node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from stair.data.frame import Array, DType
from stair.errors import StairError

OPSET: Final = 20  # the first that matches regular expressions
IR_VERSION: Final = 9


def input_of(column: str) -> str:
    """The name of a column's input: its own, unless the graph could have that name too."""
    return column if column and not column.startswith("stair:") else f"stair:column:{column}"


class Graph:
    """Nodes and constants; a value is known by its name."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            raise StairError("ONNX needs onnx: pip install 'stair[onnx]'") from None
        self._onnx: Any = onnx
        self._nodes: list[object] = []
        self._constants: list[object] = []

    def add(self, operator: str, *given: str, name: str | None = None, **settings: object) -> str:
        """One more node; the name of what it gives."""
        result = name or f"stair:{len(self._nodes)}"
        helper = self._onnx.helper
        self._nodes.append(helper.make_node(operator, list(given), [result], **settings))
        return result

    def constant(self, value: ArrayLike) -> str:
        array = np.asarray(value)
        name = f"stair:c{len(self._constants)}"
        self._constants.append(self._tensor(name, array))
        return name

    def _tensor(self, name: str, array: Array) -> object:
        if array.dtype != object:
            return self._onnx.numpy_helper.from_array(array, name)
        texts = [text.encode() for text in array.ravel().tolist()]
        kind = self._onnx.TensorProto.STRING
        return self._onnx.helper.make_tensor(name, kind, array.shape, texts)

    def axes(self, axis: int) -> str:
        return self.constant(np.array([axis], dtype=np.int64))

    def take(self, matrix: str, places: Sequence[int], axis: int = 1) -> str:
        """Some columns of a matrix."""
        return self.add(
            "Gather", matrix, self.constant(np.array(places, dtype=np.int64)), axis=axis
        )

    def cast(self, value: str, dtype: DTypeLike) -> str:
        return self.add("Cast", value, to=self._kind(np.dtype(dtype)))

    def last_sum(self, value: str, n: int) -> str:
        """Sums over the last of three axes, added one after the other."""
        sums = self.add("CumSum", value, self.constant(np.int64(2)))
        return self.add("Gather", sums, self.constant(np.int64(n - 1)), axis=2)

    def _kind(self, dtype: DType) -> int:
        if dtype.kind == "O":
            return int(self._onnx.TensorProto.STRING)
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def model(self, inputs: Mapping[str, DType], outputs: Mapping[str, DType], words: str) -> bytes:
        """The whole, checked."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            "stair",
            [helper.make_tensor_value_info(input_of(name), self._kind(dtype), ["rows", 1])
             for name, dtype in inputs.items()],
            [helper.make_tensor_value_info(name, self._kind(dtype), ["rows"])
             for name, dtype in outputs.items()],
            initializer=self._constants,
        )  # fmt: skip
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="stair",
            doc_string=words,
        )
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
