"""Thin scikit-learn classifiers around the learners.

Two classes are scored by F1 of the outlier class, more classes by accuracy.
"""

from stair.estimators.baselines import CART, ID3
from stair.estimators.distilled import DistilledStair
from stair.estimators.local import LocalStair
from stair.estimators.stair import Stair

__all__ = ["CART", "ID3", "DistilledStair", "LocalStair", "Stair"]
