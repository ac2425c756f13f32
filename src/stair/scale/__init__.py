"""Rules from data that does not fit in memory, or on one machine.

One look at the columns finds the bins, one pass writes all rows as codes, and from then on each
level of growth is one pass over the codes that gives back nothing but counts.
"""
