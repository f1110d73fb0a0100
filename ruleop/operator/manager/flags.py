"""The flags of `ruleop run`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ruleop.kubernetes.names import DEFAULT_OPERATOR
from ruleop.operator.wire.leader.lease import Timing
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.operator.shards import Pod


@dataclass(frozen=True, slots=True)
class Options:
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[str, ...] = ()
    name: str = DEFAULT_OPERATOR
    operator_namespace: str = ""
    metrics_address: str = ":8080"
    metrics_certificate: tuple[Path, Path] | None = None  # and its key, as files
    metrics_auth: bool = False
    page_address: str = ""  # empty: no page
    health_address: str = ":8081"
    leader_elect: bool = False
    selector: str = ""  # of the CRs
    pod: Pod | None = None  # with --shards auto
    lease: Timing = field(default_factory=Timing)
    max_concurrent: int | None = None
    reload: bool = True
    prune_after_reload: float = 30.0  # seconds without deletions: files of one edit may arrive one after the other
    rollouts: bool = True  # False: an edit reaches all CRs at once, whatever the rules say
    dry_run: bool = False
    qps: float | None = None
    grace: float = 30.0
    record: Path | None = None  # the folder in which each plan is recorded
    environ: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # that the rules can read
