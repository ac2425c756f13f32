"""ID3 and CART are scikit-learn's trees, written as rules."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from experiments import datasets
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score
from sklearn.tree import DecisionTreeClassifier

from places import SHARED
from stair import CART, ID3
from stair.learn.trees import _Tree
from stair.rules.columns import Numbers
from strategies import examples

# Random tables seldom reach the floor.
pytestmark = pytest.mark.filterwarnings("ignore::stair.FloorNotReached")

quick = settings(max_examples=examples(60), deadline=None)

Table = NDArray[np.float64]
Labels = NDArray[np.int64]
Data = tuple[Table, Labels]


# 32-bit numbers near a million are 1/16 apart, and this lies just between two of them: the least
# bit above it, and a 32-bit tree takes the value for another one.
EDGE = 1e6 + 1 / 32

KINDS: dict[str, tuple[float, ...]] = {
    "ties": (-1.5, 0.0, 0.1, 1.0, 2.0, 3.0),
    "rounding": (EDGE - 1e-9, EDGE, EDGE + 1e-9, EDGE + 2e-9, 1e6, 1e6 + 1e-9, 3.0, 3.0 + 1e-12),
    "missing": (math.nan, 0.0, 1.0, 2.0, 1e9, 1e9 + 1.0),
    "rounding and missing": (math.nan, EDGE - 1e-9, EDGE, EDGE + 1e-9, 1e6, 1e6 + 1e-9),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@st.composite
def tables(draw: st.DrawFn, values: tuple[float, ...], classes: tuple[int, ...] = (2, 3)) -> Data:
    """A small table of these values whose labels have all the classes."""
    n_classes = draw(st.sampled_from(classes))
    n_columns = draw(st.integers(1, 3))
    rest = draw(st.lists(st.integers(0, n_classes - 1), max_size=30 - n_classes))
    y = np.array([*range(n_classes), *rest])
    size = len(y) * n_columns
    cells = draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))
    return np.array(cells).reshape(len(y), n_columns), y


def entropy_tree(depth: int | None = None, **parameters: Any) -> DecisionTreeClassifier:
    """scikit-learn's tree as the paper grows it."""
    return DecisionTreeClassifier(
        criterion=parameters.pop("criterion", "entropy"),
        max_depth=depth,
        random_state=0,
        **parameters,
    )


def labels_by(tree: DecisionTreeClassifier, X: Table) -> Labels:
    """What the tree predicts; but two classes without a split are all inliers."""
    predicted: Labels = tree.predict(X)
    if tree.get_n_leaves() == 1 and len(tree.classes_) == 2:
        return np.zeros_like(predicted)
    return predicted


def score_by(tree: DecisionTreeClassifier, X: Table, y: Labels) -> float:
    """F1 of class 1, or accuracy where there are three classes."""
    predicted = labels_by(tree, X)
    return float(f1_score(y, predicted) if y.max() == 1 else accuracy_score(y, predicted))


def assert_same_tree(model: ID3 | CART, tree: DecisionTreeClassifier, X: Table) -> None:
    """The rules divide the rows as the leaves do, and give them the same labels."""
    pairs = set(zip(model.rules_.assign(X).tolist(), tree.apply(X).tolist(), strict=True))
    assert len(model.rules_) == len(pairs) == tree.get_n_leaves()
    assert (model.rules_.covers(X).sum(axis=1) == 1).all()
    assert model.predict(X).tolist() == labels_by(tree, X).tolist()


# ------------------------------------------------------------------------------- leaves


@every_kind
@quick
@given(data=st.data(), depth=st.integers(1, 6))
def test_rules_of_id3_are_the_leaves(kind: str, data: st.DataObject, depth: int) -> None:
    """At one and the same depth, each rule selects exactly the rows of one leaf.

    A bound from the tree's own threshold would not: it is compared with 32-bit values there.
    """
    X, y = data.draw(tables(KINDS[kind]))
    model = ID3(min_score=1.0, start_depth=depth, max_depth=depth).fit(X, y)
    assert_same_tree(model, entropy_tree(depth).fit(X, y), X)


@every_kind
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@quick
@given(data=st.data(), floor=st.sampled_from((0.5, 0.8, 1.0)))
def test_cart_is_the_first_tree_above_the_floor(
    kind: str, criterion: str, data: st.DataObject, floor: float
) -> None:
    """From the largest alpha down, the first refitted tree above the floor, else the best one."""
    X, y = data.draw(tables(KINDS[kind]))
    path = entropy_tree(criterion=criterion).cost_complexity_pruning_path(X, y).ccp_alphas
    best, expected = -1.0, None
    # scikit-learn does not prune at all for 0, so an alpha of 0 becomes the least one above it.
    for alpha in [*np.unique(np.maximum(path[1:], 5e-324))[::-1], 0.0]:
        tree = entropy_tree(criterion=criterion, ccp_alpha=alpha).fit(X, y)
        score = score_by(tree, X, y)
        if score > best:
            best, expected = score, tree
        if score > floor or score == 1:
            break
    assert expected is not None
    model = CART(min_score=floor, criterion=criterion).fit(X, y)
    assert model.score_ == best
    assert_same_tree(model, expected, X)


@every_kind
@quick
@given(
    data=st.data(),
    floor=st.sampled_from((0.5, 0.8, 1.0)),
    start=st.integers(1, 3),
    more=st.none() | st.integers(0, 3),
)
def test_id3_is_the_shallowest_tree_above_the_floor(
    kind: str, data: st.DataObject, floor: float, start: int, more: int | None
) -> None:
    """Deeper and deeper from start_depth to the first tree above the floor, else the best one."""
    X, y = data.draw(tables(KINDS[kind]))
    limit = None if more is None else start + more
    best, expected = -1.0, None
    for depth in range(start, (len(y) if limit is None else limit) + 1):
        tree = entropy_tree(depth).fit(X, y)
        score = score_by(tree, X, y)
        if score > best:
            best, expected = score, tree
        if score > floor or score == 1:
            break
    if expected is None:  # fewer rows than start_depth
        expected = entropy_tree(start).fit(X, y)
        best = score_by(expected, X, y)
    model = ID3(min_score=floor, start_depth=start, max_depth=limit).fit(X, y)
    assert model.score_ == best
    assert_same_tree(model, expected, X)


@pytest.mark.parametrize("estimator", [ID3, CART])
def test_bounds_are_right_where_the_tree_rounds(estimator: Any) -> None:
    """A tree that tells values a billionth apart writes a bound between these two.

    Its threshold, 1000000.03125, is itself one of the values, and on the wrong side for some.
    """
    X = np.array([[1e6], [1e6 + 1e-9], [EDGE], [EDGE + 1e-9], [EDGE + 2e-9]])
    y = [0, 0, 0, 1, 1]
    model = estimator(min_score=0.99).fit(X, y)
    assert model.score_ == 1.0
    outliers, inliers = model.rules_
    assert EDGE <= outliers.clauses[0].low == inliers.clauses[0].high < EDGE + 1e-9


@pytest.mark.parametrize("estimator", [ID3, CART])
def test_values_that_are_one_to_the_tree_stay_together(estimator: Any) -> None:
    """Outliers that differ from inliers only beyond 32 bits cannot be told apart by a tree."""
    X = np.array([[1e6], [1e6 + 1e-9], [5.0], [5.0]])
    model = estimator(min_score=0.99).fit(X, [0, 1, 1, 1])
    assert [(str(rule), rule.rows) for rule in model.rules_] == [
        ("x0 ≤ 500000", 2.0),
        ("x0 > 500000", 2.0),
    ]


@pytest.mark.parametrize("estimator", [ID3, CART])
def test_random_state_is_the_trees(estimator: Any) -> None:
    """Of two columns that are alike, random_state chooses as it does in scikit-learn's tree."""
    X = np.repeat(np.arange(8.0)[:, None], 2, axis=1)
    y = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    chosen = set()
    for seed in range(8):
        tree = DecisionTreeClassifier(criterion="entropy", random_state=seed).fit(X, y)
        model = estimator(random_state=seed).fit(X, y)
        assert model.rules_[0].features == (f"x{tree.tree_.feature[0]}",)
        chosen.update(model.rules_[0].features)
    assert chosen == {"x0", "x1"}


# ------------------------------------------------------------------------------- pruning


def steps_of(alphas: list[float]) -> list[float]:
    """The alphas of a path without those that differ from the last one by rounding only."""
    steps = [alphas[0]]
    for alpha in alphas[1:]:
        if alpha > steps[-1] + 1e-12:
            steps.append(alpha)
    return steps


def assert_same_path(X: Table, y: Labels, weights: Table | None, criterion: str) -> None:
    """Our path has scikit-learn's alphas, and between two of them its number of leaves."""
    positive = 1 if y.max() == 1 else None
    columns = [Numbers(f"x{j}", j) for j in range(X.shape[1])]
    ours = _Tree(X, y.astype(np.int32), weights, columns, positive, criterion, 0)
    path = ours.weakest_links()
    theirs = entropy_tree(criterion=criterion).cost_complexity_pruning_path(X, y, weights)
    expected = steps_of(np.maximum.accumulate(theirs.ccp_alphas[1:]).tolist())
    alphas = [alpha for alpha, _ in path]
    assert alphas == sorted(set(alphas))
    np.testing.assert_allclose(steps_of(alphas), expected, rtol=0, atol=1e-12)
    ends = [(low + high) / 2 for low, high in itertools.pairwise(expected)]
    for middle in [*ends, expected[-1] + 1]:
        tree = entropy_tree(criterion=criterion, ccp_alpha=middle).fit(X, y, weights)
        pruned = frozenset(node for alpha, nodes in path if alpha < middle for node in nodes)
        assert len(ours._leaf_nodes(pruned)) == tree.get_n_leaves()
        assert len(ours.leaves(X, columns, pruned)) == tree.get_n_leaves()


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@quick
@given(table=tables(KINDS["ties"] + KINDS["missing"]))
def test_pruning_path_with_ties(criterion: str, table: Data) -> None:
    """Weakest links of equal strength go together, as in scikit-learn's path."""
    X, y = table
    if len(np.unique(X)) == 1 or entropy_tree().fit(X, y).get_n_leaves() == 1:
        columns = [Numbers(f"x{j}", j) for j in range(X.shape[1])]
        tree = _Tree(X, y.astype(np.int32), None, columns, None, criterion, 0)
        assert tree.weakest_links() == []
    else:
        assert_same_path(X, y, None, criterion)


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_pruning_path_of_a_large_tree(criterion: str, n_classes: int, seed: int) -> None:
    """The heap of links gives the path that scikit-learn finds with a search per step.

    Noise in the labels makes a tree of many leaves; the weights are not whole.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    y = (X.sum(axis=1) + rng.normal(size=300) > 0).astype(np.int64)
    y[rng.random(300) < 0.2] = n_classes - 1
    weights = rng.uniform(0.1, 2.0, size=300) if seed % 2 else None
    assert entropy_tree().fit(X, y).get_n_leaves() > 30
    assert_same_path(X, y, weights, criterion)


# ------------------------------------------------------------------------------- the paper


@pytest.fixture(scope="module")
def paper() -> Any:
    """The data sets of the paper, labelled by its detector, each labelled once."""
    if not SHARED.is_dir():
        pytest.skip(f"the paper's data sets are not in {SHARED}")
    known: dict[str, Data] = {}

    def labelled(name: str) -> Data:
        if name not in known:
            data = datasets.load(name, SHARED)
            known[name] = data.X, datasets.lof_labels(data.X, data.n_outliers, 80)
        return known[name]

    return labelled


@pytest.mark.filterwarnings("ignore:Duplicate values are leading to incorrect results:UserWarning")
@pytest.mark.parametrize(
    ("name", "estimator", "total_length"),
    [
        ("Pendigits", ID3, 290),
        ("Pendigits", CART, 328),
        ("Mammography", ID3, 79),
        ("Mammography", CART, 65),
        ("SpamBase", ID3, 1546),
        ("SpamBase", CART, 1043),
    ],
)
def test_total_lengths_of_the_paper(
    paper: Any, name: str, estimator: Any, total_length: int
) -> None:
    """The baselines are as long as the paper says; versions of scikit-learn differ by a few."""
    X, y = paper(name)
    model = estimator().fit(X, y)
    assert model.floor_reached_
    assert abs(model.rules_.total_length - total_length) <= 3
