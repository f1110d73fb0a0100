"""The table of protobuf messages is what its generator makes of the pinned Kubernetes modules."""

from __future__ import annotations

import importlib.resources

import pytest

from tests.controlplane.protobuf_table import build

pytestmark = pytest.mark.real_server("Go modules, and no server")


def test_the_protobuf_table_is_up_to_date() -> None:
    assert importlib.resources.files("ruleop.localcluster.api").joinpath("protobuf_table.json").read_bytes() == build()
