"""The operator's view of the cluster.

Informers and their stores, the index of the CRs that an event concerns, the schemas of the kinds, and ruleop's own
writes that the watches have not delivered yet. Decides nothing about a CR.
"""
