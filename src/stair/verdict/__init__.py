"""Any detector's output as one label per row, and which label is the outlier."""
