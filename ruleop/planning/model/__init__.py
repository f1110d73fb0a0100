"""The values that planning works with: what it observes, its actions and conditions, and the marks on objects. Knows
none of the other wings."""
