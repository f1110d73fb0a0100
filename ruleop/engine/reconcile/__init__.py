"""One pass over one CR: observe, plan, write, report.

The reconciler and what it needs for that: the executor, drift and conflicts with others, what earlier passes taught.
One reconciler serves one watched kind.
"""
