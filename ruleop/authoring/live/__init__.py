"""Commands on a cluster: `explain`, `history` and `plan --live` read it; `rollout`, `recover` and `rename` also write."""
