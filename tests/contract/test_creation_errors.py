"""Why new objects are invalid, and what their authors are warned of. Word for word."""

from __future__ import annotations

import pytest

from tests.contract.client import Server
from tests.contract.creation import CREATIONS
from tests.contract.recording import Recording, refusal


@pytest.mark.parametrize(("about", "name"), CREATIONS.named("refused"))
def test_an_invalid_object_is_answered_with_its_causes(
    server: Server, namespace: str, about: str, name: str, recording: Recording
) -> None:
    reply = CREATIONS.create(server, namespace, about, CREATIONS.fields(about, "refused", name))
    recording.check(f"{about} refused: {name}", refusal(reply), namespace)


@pytest.mark.parametrize(("about", "name"), CREATIONS.named("warned"))
def test_a_doubtful_object_is_accepted_with_warnings(
    server: Server, namespace: str, about: str, name: str, recording: Recording
) -> None:
    fields = CREATIONS.fields(about, "warned", name)
    reply = CREATIONS.create(server, namespace, about, fields, name="a" if about == "StatefulSet" else "a.b")
    reply.ok()
    assert reply.warnings
    recording.check(f"{about} warned: {name}", sorted(reply.warnings), namespace)
