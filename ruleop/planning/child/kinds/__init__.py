"""The forms of a child, with a class for each: which objects it desires, and how it decides about them."""
