"""The migration of ruleop's entries in managedFields before the first server-side apply."""

from __future__ import annotations

from ruleop.kubernetes.merge import create_fields
from ruleop.operator.server_api import migrated, needs_migration
from tests.kubernetes.merge.shapes import SERVICE, SET, struct

POSTGRES = 'k:{"port":5432,"protocol":"TCP"}'


def entry(operation, fields, manager="ruleop", **more):
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def listed(*names):
    return {"f:spec": {"f:ports": {POSTGRES: {".": {}, **{f"f:{name}": {} for name in names}}}}}


def test_entries_need_migration_where_ruleop_updated():
    assert needs_migration([entry("Update", {})])
    assert not needs_migration(
        [entry("Apply", {}), entry("Update", {}, "kubectl"), entry("Update", {}, subresource="status")]
    )


def test_updated_and_applied_fields_become_one_entry_and_entries_of_others_stay():
    theirs = entry("Update", listed("nodePort"), "kubectl-patch")
    found = migrated([entry("Update", listed("port")), theirs, entry("Apply", listed("name"), time="now")], None)
    assert found == [theirs, entry("Apply", listed("port", "name"), time="now")]


def test_only_recorded_fields_are_kept_of_an_update_entry():
    recorded = create_fields({"spec": {"ports": [{"name": "postgres", "port": 5432}]}}, SERVICE)
    updated = {**listed("name", "port", "nodePort", "appProtocol"), "f:metadata": {"f:labels": {"f:theirs": {}}}}
    applied = listed("targetPort")
    assert migrated([entry("Update", updated), entry("Apply", applied)], recorded) == [
        entry("Apply", listed("name", "port", "targetPort"))
    ]


def test_members_of_sets_and_recorded_single_values_are_kept_whole():
    recorded = create_fields({"hosts": ["a"], "open": 1}, struct(hosts=SET))
    updated = {"f:hosts": {'v:"a"': {}, 'v:"b"': {}}, "f:open": {"f:inside": {}}}
    assert migrated([entry("Update", updated)], recorded) == [entry("Apply", updated)]
