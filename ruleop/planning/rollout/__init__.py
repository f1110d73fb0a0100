"""Rollouts: an edit of the rules reaches the custom resources in waves. State machines without I/O and without a clock;
the operator and the command `ruleop rollout` drive them."""
