"""How rules are found: STAIR in `grow`, L-STAIR in `partition`, the shortest in `distill`."""
