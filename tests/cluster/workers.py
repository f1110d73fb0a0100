"""Which tests share a worker of pytest-xdist, where several run side by side: each worker has control planes of its
own.

A control plane takes seconds to start, memory, and a part of a core also while nothing is asked of it. So tests that
use the same one, and take minutes together, run one after the other in one worker. All others are distributed by file.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Beginnings of paths, the longest work first: what is begun late keeps the others waiting for its end.
GROUPS = (
    ("tests/cluster/faults/",),
    ("tests/cluster/test_missed_permissions.py",),
    ("tests/cluster/test_generated_roles.py",),
    # The fixture `server`, which has no controllers.
    tuple(
        f"tests/cluster/test_{subject}.py"
        for subject in (
            "local_objects",
            "merge",
            "openapi_document",
            "schema_crds",
            "schema_table",
            "tables",
            "typed_shapes",
            "unique_fields",
            "walks",
        )
    ),
    ("tests/contract/",),
)


def group_of(nodeid: str) -> int:
    """Its index in GROUPS; their number for a test that belongs to none."""
    return next((index for index, paths in enumerate(GROUPS) if nodeid.startswith(paths)), len(GROUPS))


class ByControlPlane(LoadScopeScheduling):
    """Gives a worker a group or a file at a time, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        group = group_of(nodeid)
        return GROUPS[group][0] if group < len(GROUPS) else nodeid.partition("::")[0]
