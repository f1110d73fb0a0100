"""${NAME} and ${NAME:-default} in `vars`, the only access of rules to environment variables.

The variables that are read are recorded, because their values are part of the digest of the project.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.files import is_utf8
from ruleop.language.rules.findings import Findings
from ruleop.language.templates import NotJson, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import YamlNode

# A default ends at the first `}` outside of quotes.
REFERENCE = re.compile(r"""\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-("[^"]*"|'[^']*'|[^}]*))?\}""", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


@dataclass(slots=True)
class EnvVars:
    """The environment variables, and those that were read."""

    variables: Mapping[str, str]
    read: dict[str, str | None] = field(default_factory=dict)
    defaults: dict[str, str | None] = field(default_factory=dict)  # None without one, "" for several

    def get(self, name: str, default: str | None) -> str | None:
        known = self.defaults.get(name, default)
        self.defaults[name] = default if known == default else None if None in {known, default} else ""
        self.read[name] = self.variables.get(name)
        return self.read[name]


@dataclass(frozen=True, slots=True)
class Constants:
    """Reads the constants of a rule, and substitutes environment variables in their strings."""

    environment: EnvVars
    findings: Findings

    def without_values(self) -> Constants:
        """Reads the same constants with the names of variables that are set, instead of their values, which may be
        secret. Mistakes are reported elsewhere."""
        names = {name: f"${{{name}}}" if value else value for name, value in self.environment.variables.items()}
        return Constants(EnvVars(names), Findings({}))

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
            message = "vars are constants without templates, so this is plain text: use `let`"
            self.findings.warning("elsewhere", message, site)
        if whole := REFERENCE.fullmatch(text):
            return self._value(whole, site)
        return REFERENCE.sub(lambda match: self._resolve(match[1], match[2], site), text)

    def _value(self, match: re.Match[str], site: Site) -> JSON:
        """The value of a string that is a single reference. It has the type of its default, if that is an unquoted
        number or boolean."""
        name, default = match[1], match[2]
        value = self._resolve(name, default, site)
        if default is None:
            return value
        if default in _BOOLEANS:
            if value.lower() in _BOOLEANS:
                return _BOOLEANS[value.lower()]
            self._mistake(f"the variable {name} must be true or false, like its default", site)
        elif _NUMBER.fullmatch(default):
            with contextlib.suppress(NotJson):
                if _NUMBER.fullmatch(value.strip()):
                    return resolve_scalar(value.strip())
            self._mistake(
                (
                    f"the variable {name} must be a number, like its default; "
                    f'put the default in quotes for text: ${{{name}:-"{default}"}}'
                ),
                site,
            )
        return value

    def _resolve(self, name: str, default: str | None, site: Site) -> str:
        if default is not None and len(default) > 1 and default[0] in "'\"" and default[-1] == default[0]:
            default = default[1:-1]
        value = self.environment.get(name, default)
        if value is not None and not is_utf8(value):
            self._mistake(f"the variable {name} is not valid UTF-8", site)
            return ""
        # As in a shell, `:-` also applies to empty values.
        if value or (value is not None and default is None):
            return value
        if default is not None:
            return default
        self._mistake(f"the variable {name} is not set: set it, or write a default, ${{{name}:-default}}", site)
        return ""

    def _mistake(self, message: str, site: Site) -> None:
        self.findings.mistake("environment", message, site)
