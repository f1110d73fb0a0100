"""From the text of templates to trees, and what can be read of a template before it is rendered."""

from ruleop.language.templates.compile.hints import has_templates, instead_of
from ruleop.language.templates.compile.library import NO_KIND, Library, quoted_names
from ruleop.language.templates.compile.references import literal_names, picked_names
from ruleop.language.templates.compile.value_flow import is_made, origins_of, slots_from
from ruleop.language.templates.compile.value_trees import holds_tags, tag_of

__all__ = [
    "NO_KIND",
    "Library",
    "has_templates",
    "holds_tags",
    "instead_of",
    "is_made",
    "literal_names",
    "origins_of",
    "picked_names",
    "quoted_names",
    "slots_from",
    "tag_of",
]
