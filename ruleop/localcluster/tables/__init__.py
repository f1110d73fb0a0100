"""The rows of `kubectl get`: columns and cells of built-in kinds, as Kubernetes prints them, and of custom kinds, by
their printer columns. Pure functions of an object and a time."""

from ruleop.localcluster.tables.builtin import cells, columns, conditions
from ruleop.localcluster.tables.custom import custom_cells, custom_columns

__all__ = [
    "cells",
    "columns",
    "conditions",
    "custom_cells",
    "custom_columns",
]
