"""The sample CRs, their existing objects, and the snapshots of their plans.

python -m tests.projects.snapshots     # writes the snapshots
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.core.kinds import Kind, Object
from tests.projects.rendering import document, documents, planned, snapshot

if TYPE_CHECKING:
    from ruleop.core.planning import Plan

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    project: str
    cr: str
    served: tuple[Kind, ...] = ()
    final: bool = False
    of: str = ""  # the name of its existing/ file and CR, if different

    @property
    def folder(self) -> Path:
        return ROOT / self.project

    @property
    def existing(self) -> list[Object]:
        """The existing objects: existing/<name>.yaml in the project, if that file exists."""
        file = self.folder / "existing" / f"{self.cr}.yaml"
        return documents(file) if file.exists() else []

    @property
    def cr_file(self) -> Path:
        return self.folder / "examples" / f"{self.of or self.cr}.yaml"

    @property
    def file(self) -> Path:
        beside = self.folder if self.project else self.folder / "examples"
        return beside / "snapshots" / f"{self.cr}.yaml"

    def plan(self) -> Plan:
        return planned(self.folder, document(self.cr_file), self.existing, served=self.served, final=self.final)


CASES = (
    Case("", "app"),
    Case("", "memcached"),
    Case("examples/memcached-v1", "memcached"),
    Case("examples/myapp", "myapp"),
    Case("examples/crontab", "crontab"),
    Case("examples/wordpress", "blog"),
    Case("examples/wordpress", "small"),
    Case("examples/postgres", "orders", served=(Kind("monitoring.coreos.com", "v1", "ServiceMonitor"),)),
    Case("examples/postgres", "small"),
    Case("examples/memcached-chart", "standalone"),
    Case("examples/memcached-chart", "replicated", served=(Kind("monitoring.coreos.com", "v1", "ServiceMonitor"),)),
    Case("tests/projects/kafka", "events"),
    Case("tests/projects/kafka", "events-too-many-brokers", of="events"),
    Case("tests/projects/tenant", "acme"),
    Case("tests/projects/shop", "shop", served=(Kind("cert-manager.io", "v1", "Certificate"),)),
    Case("tests/projects/shop", "plain"),
    Case("tests/projects/backup", "pg"),
    Case("tests/projects/backup", "pg-deleted", of="pg", final=True),
)

if __name__ == "__main__":
    for case in CASES:
        case.file.parent.mkdir(exist_ok=True)
        case.file.write_text(snapshot(case.plan()), encoding="utf-8")
