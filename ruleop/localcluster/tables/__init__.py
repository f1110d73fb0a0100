"""The rows of `kubectl get`: columns and cells of built-in kinds, as Kubernetes prints them, and of custom kinds, by
their printer columns. Pure functions of an object and a time."""
