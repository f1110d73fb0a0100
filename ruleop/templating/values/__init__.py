"""The values that a running template works with: data, text with slots, undefined values, and what may be done with them."""
