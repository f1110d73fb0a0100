"""DaemonSets: the number of their template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.validation.apps.daemon_set import numbered, template_number

if TYPE_CHECKING:
    from ruleop.core.kinds import Object


def daemon_set_created(daemon_set: dict[str, Any]) -> dict[str, Any]:
    return numbered(daemon_set, 1)


def daemon_set_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    return numbered(new, template_number(old) + (new["spec"].get("template") != old["spec"].get("template")))
