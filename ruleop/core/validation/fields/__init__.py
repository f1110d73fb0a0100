"""Values that many kinds have: names, labels, selectors, numbers, addresses."""
