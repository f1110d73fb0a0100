"""One pass over one CR: observe, plan, write, report.

One reconciler serves one watched kind. Here are also its executor, live reads, the log of a pass and the debounce of
statuses.
"""
