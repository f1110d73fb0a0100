"""From the files of a project to rules."""

from ruleop.language.rules.facts.scopes import RESERVED as RESERVED_NAMES
from ruleop.language.rules.loading.loader import Loaded, Watch, build_unchecked

__all__ = ["RESERVED_NAMES", "Loaded", "Watch", "build_unchecked"]
