"""Clusters in memory with the projects of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ruleop.localcluster import LocalCluster
from tests.authoring.live.harness import Live, new_live
from tests.authoring.live.projects import SHOPS, SITES, shop, site

SETTLED = {"Ready"}


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Live]:
    """The project of sites, and its CRD in a cluster."""
    with LocalCluster() as cluster:
        yield new_live(tmp_path, cluster, SITES)


@pytest.fixture
def ready_sites(sites: Live) -> Live:
    """Three sites whose children exist and are ready."""
    for name, namespace in (("a", "default"), ("b", "default"), ("c", "other")):
        sites.apply(site(name, namespace=namespace))
    sites.converge(lambda: set(sites.reasons("Site")) == SETTLED)
    return sites


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[Live]:
    """The project of shops, and its CRD in a cluster."""
    with LocalCluster() as cluster:
        yield new_live(tmp_path, cluster, SHOPS)


@pytest.fixture
def troubled(shops: Live) -> Live:
    """A shop whose database fails, so that others wait, and whose certificate is not issued."""
    shops.apply(shop("a", pod="fail"))
    shops.converge(lambda: "0 of 2 pods available" in shops.message("Shop") and len(shops.objects("Pod")) == 2)
    return shops
