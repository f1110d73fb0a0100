"""Plans custom resources for `render`, `plan` and `test`: from files, of a cluster, and recorded ones."""
