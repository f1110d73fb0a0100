"""The web page of a running operator: what `explain`, `rollout status` and `/readyz` tell, read only and live.

The lists and counts come from what the operator has in memory, and cost no request. What is about one custom resource
is the document of `ruleop explain -o json`, in which values of Secrets are masked.
"""
