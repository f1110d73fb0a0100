"""The errors of expressions."""

from __future__ import annotations

from ruleop.core.errors import RenderError
from ruleop.core.templating.compile.environment import as_fault
from ruleop.core.templating.values.faults import Fault, fault_of


def fault_in(error: Exception) -> Fault:
    """The error of an expression as a fault. Raises what is not one."""
    if isinstance(error, (RecursionError, MemoryError)):
        raise error
    return fault_of(error) if isinstance(error, RenderError) else as_fault(error)
