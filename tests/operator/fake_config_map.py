"""The ConfigMap of the inventory or of the revisions, in memory."""

from __future__ import annotations

import asyncio

from ruleop.operator.controllers.inventory import decode, encode


class FakeConfigMap:
    """A ConfigMap on a server that rejects a write with an outdated resourceVersion."""

    def __init__(self):
        self.data = self.binary = None
        self.version = 0
        self.reads = self.writes = self.refused = 0
        self.keeps = lambda data: data

    def as_object(self):
        if self.data is None:
            return None
        return {"metadata": {"resourceVersion": str(self.version)}, "data": self.data, "binaryData": self.binary}

    async def read(self):
        self.reads += 1
        await asyncio.sleep(0)
        return self.as_object()

    async def write(self, data, version, *, binary=None):
        await asyncio.sleep(0)
        if version != ("" if self.data is None else str(self.version)):
            self.refused += 1
            return None
        self.writes += 1
        self.version += 1
        self.data, self.binary = self.keeps(dict(data)), binary
        return self.as_object()

    def write_as_somebody_else(self, entries):
        self.version += 1
        self.data = encode(entries)

    def entries(self):
        return decode(self.data or {})
