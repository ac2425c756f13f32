"""Rules on new rows that are on a GPU: nothing but labels is made, and they stay there."""

from __future__ import annotations

import numpy as np

from stair.data.packages import Foreign
from stair.errors import StairError
from stair.gpu.cuda import on_device
from stair.progress import quiet
from stair.rules.rule_set import RuleSet
from stair.scale.held import held_table


def predict(rules: RuleSet, data: object, device: int = 0) -> Foreign:
    """The class of each row, as its place in `rules.classes`, in an array on the GPU.

    The data is a matrix on the GPU or a dict of columns that are there. Rules may speak of numbers,
    of true and false, and of categories of numbers; partitions are for the processor.
    """
    places = np.array(
        [*(rules.classes.index(rule.label) for rule in rules), rules.classes.index(rules.default)],
        dtype=np.int32,
    )
    with on_device(device) as gpu:
        numbers = assign(rules, data, device)
        return gpu.here(places)[numbers]


def assign(rules: RuleSet, data: object, device: int = 0) -> Foreign:
    """The number of the rule that decides about each row, from 0; −1 where none does or where an
    exception lifts it."""
    if rules.routing:
        raise StairError(
            "rules with partitions are applied by the processor; bring the rows there, and use "
            "rules.predict(data)"
        )
    with on_device(device) as gpu:
        held = held_table(data, gpu, quiet)
        used = {clause.feature for clause in rules.clauses}
        sources = [each.source for each in rules.schema.fields if each.name in used]
        missing = next((name for name in sources if name not in held.names), None)
        if missing is not None:
            raise StairError(f'the rules speak of "{missing}", but the data has no such column')
        table = held.table_there
        beside = next((name for name in sources if name not in held.there), None)
        if beside is not None:
            raise StairError(f'"{beside}" is not on the GPU; use rules.predict(data)')
        looked = table.lookups(rules.rules, rules.schema)
        lifting = table.lookups(rules.exceptions, rules.schema)
        if looked is None or lifting is None:
            raise StairError(
                "the rules speak of columns whose values are not told apart on the GPU; use "
                "rules.predict(data)"
            )
        _, numbers = gpu.match(looked[1], looked[0], 0, held.n_rows)
        if rules.exceptions:
            _, lifted = gpu.match(lifting[1], lifting[0], 0, held.n_rows)
            numbers = gpu.xp.where(lifted >= 0, np.int32(-1), numbers)
        return numbers
