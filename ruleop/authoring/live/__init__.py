"""Commands on a cluster: `explain`, `history` and `plan --live` read; `rollout`, `recover` and `rename` also write."""
