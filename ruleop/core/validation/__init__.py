"""Validation of the objects of built-in kinds, as the API server does it, for the server in memory and `ruleop check`.

The file of a kind is `ruleop/core/validation/GROUP/KIND.py`. `fields` has the values that many kinds have: names,
labels, numbers, addresses. Nothing here reads another object or knows how objects are stored and served. The errors are
worded as those of the real server, with which the contract tests compare them.
"""
