"""Warns once about each kind that the rules need and the cluster does not serve, and logs when it is served.

A kind that is not served is not an error: its CRD may be installed later, and nothing has to be done then. But if
the CRD is missing by mistake, no CR is reconciled, and no condition shows the reason.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from ruleop.operator.wire.watch.store import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Kind
    from ruleop.operator.cache.informers import Informer
    from ruleop.operator.controllers.controllers import Controller


class UnservedKinds:
    def __init__(self) -> None:
        self._reported: set[Kind] = set()
        self.log = structlog.get_logger()

    def report(self, informers: Iterable[Informer], controllers: Iterable[Controller]) -> None:
        states: dict[Kind, set[State]] = {}
        for informer in informers:
            states.setdefault(informer.need.kind, set()).add(informer.state)
        served = {kind.versionless for kind, found in states.items() if found != {State.UNSERVED}}
        needed = {
            kind: (watched, optional)
            for kind, watched, optional, choice in _needed(controllers)
            if not (choice and kind.versionless in served)
        }
        self._reported &= needed.keys()
        for kind in sorted(needed):
            if kind not in states:
                continue
            if states[kind] == {State.UNSERVED} and kind not in self._reported:
                self._reported.add(kind)
                self._warn(kind, *needed[kind])
            elif kind in self._reported and states[kind] & {State.SYNCED, State.FORBIDDEN}:
                # Not yet while it is being listed: the first list of a new kind may be answered with 404 again.
                self._reported.remove(kind)
                self.log.info("kind is served; resumed", kind=str(kind))

    def _warn(self, kind: Kind, watched: bool, optional: bool) -> None:
        if watched:
            self.log.warning("watched kind is not served; install its CRD", kind=str(kind))
        elif optional:
            self.log.info("kind is not served; its optional children are left out", kind=str(kind))
        else:
            self.log.warning("kind is not served; children that need it wait", kind=str(kind))


def _needed(controllers: Iterable[Controller]) -> Iterator[tuple[Kind, bool, bool, bool]]:
    """Each kind that rules name, whether it is a watched one, whether all that needs it is optional, and whether all
    that needs it can have another version of it instead."""
    watched: set[Kind] = set()
    required: set[Kind] = set()
    optional: set[Kind] = set()
    fixed: set[Kind] = set()
    for rule in (rule for controller in controllers for rule in controller.in_force):
        watched.add(rule.kind)
        observed = {each.kind for observe in rule.observe.values() for each in (observe, *observe.owners)}
        required.update(observed)
        fixed.update({rule.kind, *observed})
        for child in rule.every_child:
            (optional if child.optional else required).update(child.kinds)
            versions = Counter(kind.versionless for kind in child.kinds)
            fixed.update(kind for kind in child.kinds if versions[kind.versionless] == 1)
    for kind in watched | required | optional:
        yield kind, kind in watched, kind not in required, kind not in fixed
