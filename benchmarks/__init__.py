"""Fit time and peak memory of stair beside scikit-learn and LightGBM; see `python -m benchmarks`.

Machines are noisy, so the figures that count are ratios between contenders of one run.
"""
