"""The ServiceAccount by whose permissions the children of a custom resource are written: `writeAs`.

Its author may write any value into a custom resource. So a computed account is one of the custom resource's own
namespace; any other has to be literal in the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RenderError
from ruleop.kubernetes.accounts import ACCOUNT_IN_WORDS, ServiceAccount
from ruleop.language.templates import view
from ruleop.messages import shortened

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule


def account_of(rule: Rule, resource: Object) -> ServiceAccount | None:
    """None: children are written as the operator. Raises RenderError."""
    template = rule.reach.write_as
    if template is None:
        return None
    given = {name: value for name, value in resource.items() if name != "status"}
    names = {"cr": view("cr", given), "vars": view("vars", dict(rule.vars))}
    names |= {name: view(name, resource.get(name) or {}) for name in ("metadata", "spec")}
    text = template.string(names)
    found = ServiceAccount.parse(text)
    if found is None:
        message = f"{shortened(text)!r} is not {ACCOUNT_IN_WORDS}"
        raise RenderError(message, template.site, expression=template.quotation)
    namespace = resource["metadata"].get("namespace") or ""
    if template.constant is None and found.namespace != namespace:
        of = f"of its own namespace {namespace}" if namespace else "that is literal in the rule"
        message = f"{found} is not permitted: the custom resource can name only a ServiceAccount {of}"
        raise RenderError(message, template.site, expression=template.quotation)
    return found
