"""From the text of templates to trees, and what can be read of a template before it is rendered."""

from ruleop.language.templates.compile.hints import instead_of
from ruleop.language.templates.compile.library import Library
from ruleop.language.templates.compile.value_flow import is_made, origins_of, slots_from

__all__ = ["Library", "instead_of", "is_made", "origins_of", "slots_from"]
