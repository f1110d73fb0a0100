"""${NAME} and ${NAME:-default} in `vars`: the only way by which the environment reaches a rule.

What was read is recorded, because it belongs to the project's digest: with another environment it is another project.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.templating import NotJson, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kinds import JSON
    from ruleop.rules.findings import Findings
    from ruleop.templating import YamlNode

# A default ends at the first `}`, unless it is in quotes.
REFERENCE = re.compile(r"""\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-("[^"]*"|'[^']*'|[^}]*))?\}""", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


@dataclass(slots=True)
class Environment:
    """The variables, and which of them were looked at."""

    variables: Mapping[str, str]
    read: dict[str, str | None] = field(default_factory=dict)

    def get(self, name: str) -> str | None:
        self.read[name] = self.variables.get(name)
        return self.read[name]


@dataclass(frozen=True, slots=True)
class Constants:
    """Reads the constants of a rule, with the environment's values in their strings."""

    environment: Environment
    findings: Findings

    def read(self, node: YamlNode) -> JSON:
        value = node.value
        if isinstance(value, dict):
            return {name: self.read(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if isinstance(value, str):
            return self._text(value, node.site)
        return value

    def _text(self, text: str, site: Site) -> JSON:
        rest = REFERENCE.sub("", text)
        if "${" in rest:
            self._mistake(f'"{text}" holds a `${{` that is neither ${{NAME}} nor ${{NAME:-default}}', site)
        if "{{" in rest or "{%" in rest:
            self.findings.warning("elsewhere", "vars are constants and hold no templates, so this is plain text: say it under `let`", site)
        if whole := REFERENCE.fullmatch(text):
            return self._value(whole, site)
        return REFERENCE.sub(lambda match: self._printed(match, site), text)

    def _value(self, match: re.Match[str], site: Site) -> JSON:
        """A reference that is the whole value: of the type of its default, if that is an unquoted number or boolean."""
        name, default = match[1], match[2]
        found = self._found(name, default, site)
        if default is None:
            return found
        if default in _BOOLEANS:
            if found.lower() in _BOOLEANS:
                return _BOOLEANS[found.lower()]
            self._mistake(f"the variable {name} must be true or false, as its default is", site)
        elif _NUMBER.fullmatch(default):
            with contextlib.suppress(NotJson):
                if _NUMBER.fullmatch(found.strip()):
                    return resolve_scalar(found.strip())
            self._mistake(
                f'the variable {name} must be a number, as its default is; a default in quotes makes it text: ${{{name}:-"{default}"}}',
                site,
            )
        return found

    def _printed(self, match: re.Match[str], site: Site) -> str:
        return self._found(match[1], match[2], site)

    def _found(self, name: str, default: str | None, site: Site) -> str:
        value = self.environment.get(name)
        if value is not None and not is_text(value):
            self._mistake(f"the variable {name} is no UTF-8 text", site)
            return ""
        # As in a shell, `:-` is also for what is set but empty.
        if value or (value is not None and default is None):
            return value
        if default is not None:
            return default[1:-1] if default[:1] in ("'", '"') and default[-1:] == default[:1] and len(default) > 1 else default
        self._mistake(f"the variable {name} is not set: set it, or write a default, ${{{name}:-default}}", site)
        return ""

    def _mistake(self, message: str, site: Site) -> None:
        self.findings.mistake("environment", message, site)


def is_text(value: str) -> bool:
    """Python keeps the bytes of a variable, or of a file's name, that are no UTF-8 as halves of surrogate pairs."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
