"""The contents of the ConfigMap `<name>-revisions`, and what the operator makes of them.

`data.index` is a JSON list, the oldest first: the digest of the files of a project, the time from which it was in
force, and whether it reads environment variables. `binaryData` has the files of the last ones by their digests, as
JSON that is compressed by gzip.

Values of environment variables may be secret. They are neither stored nor part of the digest, which with the files
would let a reader try values: a project that is loaded again reads the environment of the process that loads it.

The contents are bounded. Anybody with permission for the ConfigMap can edit it: what is invalid is ignored, and files
count only if they have the digest under which they are stored.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import RuleFiles, digest_of_files
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import Object

MAX_ENTRIES: Final = 100  # of the index
MAX_KEPT: Final = 10  # with their files
MAX_BYTES: Final = 700_000  # of all files as stored; a ConfigMap has at most 1 MiB
MAX_UNPACKED: Final = 32 * 1024 * 1024  # of one project
INDEX: Final = "index"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_GZIP = zlib.MAX_WBITS | 16


def revisions_key(namespace: str, name: str) -> ObjectKey:
    """The ConfigMap of an operator of this name."""
    return ObjectKey("", "ConfigMap", namespace, f"{name}-revisions")


@dataclass(frozen=True, slots=True)
class Revision:
    """Rules that were in force from `since`, until the next revision."""

    digest: str  # of the files of the project: Project.revision
    since: str  # RFC 3339, in seconds
    reads_environment: bool = False


@dataclass(frozen=True, slots=True)
class Revisions:
    index: tuple[Revision, ...] = ()  # the oldest first
    packed: Mapping[str, str] = field(default_factory=dict)  # files by the digest, compressed and in base64

    @property
    def latest(self) -> Revision | None:
        return self.index[-1] if self.index else None

    def find(self, digest: str) -> Revision | None:
        """The last revision with this digest."""
        return next((each for each in reversed(self.index) if each.digest == digest), None)

    def is_recorded(self, digest: str) -> bool:
        """Whether this is the latest revision, with its files."""
        return self.latest is not None and self.latest.digest == digest and digest in self.packed

    def recorded(self, revision: Revision, files: str | None) -> Revisions:
        """With one more revision, or, if it is the latest, with its files. None: without files, which are too large."""
        is_latest = self.latest is not None and self.latest.digest == revision.digest
        index = self.index if is_latest else (*self.index, revision)[-MAX_ENTRIES:]
        packed = {**self.packed, revision.digest: files} if files is not None else self.packed
        return Revisions(index, dict(_newest(index, packed)))


def _newest(index: tuple[Revision, ...], packed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The files that are kept: those of the last revisions, up to the limit."""
    left = MAX_BYTES
    for digest in [*dict.fromkeys(each.digest for each in reversed(index))][:MAX_KEPT]:
        files = packed.get(digest)
        if files is None:
            continue
        left -= _size(files)
        if left < 0:
            return
        yield digest, files


def _size(packed: str) -> int:
    return len(packed) * 3 // 4


# -- the ConfigMap -----------------------------------------------------------------------------------------------------


def encode(revisions: Revisions) -> str:
    """The index; the files are stored as they are."""
    return orjson.dumps([_plain(each) for each in revisions.index]).decode()


def _plain(revision: Revision) -> dict[str, Any]:
    environment = {"environment": True} if revision.reads_environment else {}
    return {"digest": revision.digest, "since": revision.since, **environment}


def decode(config_map: Object | None) -> Revisions:
    """The contents of the ConfigMap, without what is invalid."""
    if config_map is None:
        return Revisions()
    data, binary = config_map.get("data"), config_map.get("binaryData")
    try:
        entries = orjson.loads(data[INDEX]) if isinstance(data, dict) else []
    except (ValueError, KeyError, TypeError):
        entries = []
    index = [each for each in map(_revision, entries if isinstance(entries, list) else []) if each is not None]
    texts = binary if isinstance(binary, dict) else {}
    packed = {digest: each for digest, each in texts.items() if _DIGEST.fullmatch(digest) and isinstance(each, str)}
    return Revisions(tuple(index[-MAX_ENTRIES:]), packed)


def _revision(entry: Any) -> Revision | None:
    match entry:
        case {"digest": str() as digest, "since": str() as since}:
            if _DIGEST.fullmatch(digest) and _TIME.fullmatch(since):
                return Revision(digest, since, entry.get("environment") is True)
    return None


# -- files -------------------------------------------------------------------------------------------------------------


def pack(files: Mapping[str, str]) -> str | None:
    """None if they are too large to be stored."""
    if sum(map(len, files.values())) > MAX_UNPACKED:
        return None
    plain = orjson.dumps(files, option=orjson.OPT_SORT_KEYS)
    packed = gzip.compress(plain, 9, mtime=0) if len(plain) <= MAX_UNPACKED else b""
    return base64.b64encode(packed).decode() if packed and len(packed) <= MAX_BYTES else None


def unpack(packed: str) -> dict[str, str] | None:
    """None if they are invalid."""
    try:
        unpacker = zlib.decompressobj(_GZIP)
        plain = unpacker.decompress(base64.b64decode(packed, validate=True), MAX_UNPACKED + 1)
        files = orjson.loads(plain) if unpacker.eof else None
    except (ValueError, TypeError, zlib.error, binascii.Error):
        return None
    is_valid = isinstance(files, dict) and all(isinstance(each, str) for each in files.values())
    return files if is_valid else None


def files_of_revision(revisions: Revisions, digest: str, root: str = "") -> RuleFiles | None:
    """The files of a revision. None if they are not kept, or are not those of the digest."""
    packed = revisions.packed.get(digest)
    files = unpack(packed) if packed is not None else None
    if files is None or digest_of_files(files) != digest:
        return None
    return RuleFiles(root, files)
