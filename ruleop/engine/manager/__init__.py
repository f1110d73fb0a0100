"""The operator as a whole: start and stop order, rules and their reload, discovery, the inventory, readiness.

Puts the other wings together; none of them knows it.
"""
