"""Where a case runs: what its steps can do, and how they see the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.authoring.ruletests.running.case_cluster import CaseKinds
    from ruleop.authoring.ruletests.running.state import After
    from ruleop.core.errors import Site
    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.templating.field_sites import FieldPath


class World(Protocol):
    """Planning without a cluster, or an operator with a cluster in memory."""

    @property
    def kinds(self) -> CaseKinds: ...

    @property
    def resource(self) -> Object | None:
        """The CR; None if it does not exist."""
        ...

    def create(self, resource: Object) -> None:
        """Creates the CR."""
        ...

    def edit(self, resource: Object) -> None:
        """Replaces the CR, as a user does."""
        ...

    def delete(self) -> None:
        """Deletes the CR."""
        ...

    def advance(self, seconds: float) -> None:
        """Lets time pass. Raises RuleopError where it cannot be set."""
        ...

    def add(self, obj: Object) -> None:
        """Creates another object, or changes the existing one to it."""
        ...

    def objects_of(self, name: str) -> list[Object]:
        """The objects of a child by its id, or an object by Kind/name."""
        ...

    def change(self, obj: Object, patch: Mapping[str, Any]) -> None:
        """Changes an object, as a user or a controller does."""
        ...

    def remove(self, obj: Object) -> None:
        """Deletes an object other than the CR."""
        ...

    def reject(self, names: Iterable[str]) -> None:
        """The API server rejects writes of these children until the next step."""
        ...

    def make_ready(self, names: Iterable[str] | None) -> None:
        """Controllers make these children ready; None: all."""
        ...

    def reconcile(self, *, ready: bool = False) -> None:
        """Waits until the operator has nothing left to do. `ready`: controllers make each child ready."""
        ...

    def after(self) -> After:
        """The state now."""
        ...

    def source(self, key: ObjectKey, path: FieldPath) -> Site | None:
        """The place in the project's files that a field comes from: of a child's object, or of the CR's status."""
        ...
