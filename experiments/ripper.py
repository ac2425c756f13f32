"""RIPPER by wittgenstein on one table: total length, rules and F1 on one line.

python -m experiments.ripper TABLE.npz
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score


def main() -> int:
    warnings.simplefilter("ignore")
    import wittgenstein

    with np.load(sys.argv[1]) as table:
        X, y = table["X"], table["y"].astype(int)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = wittgenstein.RIPPER(random_state=0)
    model.fit(frame, y=y, pos_class=1)
    rules = list(model.ruleset_)
    length = sum(len({condition.feature for condition in rule.conds}) for rule in rules)
    score = f1_score(y, np.asarray(model.predict(frame)).astype(int))
    print(length, len(rules), score)
    return 0


if __name__ == "__main__":
    sys.exit(main())
