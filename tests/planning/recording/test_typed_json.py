"""Parts of a history are read back from JSON unchanged."""

import json

from ruleop.errors import Cause
from ruleop.planning import Failed, Failure
from ruleop.planning.recording.recording import decode, encode


def test_a_failed_write_is_read_back_from_json_with_its_causes():
    causes = (Cause("spec", "FieldValueForbidden", "no", frozenset({"replicas", "template"})), Cause("data[p]"))
    failed = Failed(Failure.IMMUTABLE, "no", redacted="rejected", causes=causes)
    assert decode(json.loads(json.dumps(encode(failed)))) == failed
