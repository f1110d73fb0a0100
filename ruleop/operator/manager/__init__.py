"""The operator as a whole: start and stop order, rules and their reload, discovery, the inventory, readiness.

Connects the other parts of the engine; none of them imports it.
"""
