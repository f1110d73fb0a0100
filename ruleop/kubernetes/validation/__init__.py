"""Validation of the objects of built-in kinds, as the API server does it, for the server in memory and `ruleop check`.

`tables` has what the kinds of an API group refuse: rows of paths and rules, most of which are words (`rules`), the
others functions. `rows` applies a table. Nothing here reads another object or knows how objects are stored and served.
Contract tests hold the decisions to the real server, and most of the words.
"""
