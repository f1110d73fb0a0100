"""Why new objects are invalid: with the causes at the fields of the real server."""

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
