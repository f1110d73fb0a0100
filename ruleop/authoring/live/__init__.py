"""One-shot reads of a cluster for `ruleop explain` and `ruleop plan --live`. Nothing here can write."""
