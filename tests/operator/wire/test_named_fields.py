"""The fields in messages of the API server, as 1.36 writes them."""

from __future__ import annotations

import pytest

from ruleop.operator.wire.client.server_errors import MAX_NAMED, named_fields

MESSAGES = {
    'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
    'unknown field "spec.serivce", duplicate field "spec.replicas"': ("spec.serivce", "spec.replicas"),
    'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field '
    "ServicePort.spec.ports.port of type int32": ("spec.ports.port",),
    "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int "
    "or float), got string": (".spec.replicas",),
    "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n"
    '  .spec.template.spec.containers[name="a"].imag: field not declared in schema\n'
    "  .spec.nope: field not declared in schema": ('.spec.template.spec.containers[name="a"].imag', ".spec.nope"),
    "admission webhook denied the request: no": (),
    "": (),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_in_a_message_are_found(message: str):
    assert tuple(cause.field for cause in named_fields(message)) == MESSAGES[message]


def test_a_long_message_names_few_fields():
    assert len(named_fields(", ".join(f'unknown field "spec.a{number}"' for number in range(1000)))) == MAX_NAMED
    assert named_fields("." * 100_000 + ".a" * 100_000) == ()
