"""What the operator knows of the cluster.

Informers and their stores, which CR an event concerns, what the kinds look like, and what ruleop itself has written but
not seen yet. Decides nothing about a CR.
"""
