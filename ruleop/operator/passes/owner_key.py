"""The operator's key, with which it proves that it wrote an owner annotation or set fields by a field manager, and the
Secret that keeps it.

The key is made when rules first need it: when the garbage collector does not delete all of their children, or when they
set fields of objects of others. All replicas
use the same key: of several that create the Secret at once, one succeeds, and the others read it. Without permission
for the Secret nothing is reconciled that needs the key: believing annotations without proof would be no protection.

Children of earlier versions have annotations without proof, and those of a lost key an invalid one. If the inventory
shows that there may be such children when the key is made, the Secret has `accept-unproven`, and their annotations are
believed until all of them have been written again. The names of field managers got a proof later than annotations. So a
Secret without `managers-proven` is of a version before, and managers without proof are believed until all of them have
been renamed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from typing import TYPE_CHECKING, Any, Final

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning.model.marks import KEY_LENGTH, KeyedProofs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.operator.server_api import StoredData

KEY, PREVIOUS_KEY, ACCEPT_UNPROVEN = "key", "previous-key", "accept-unproven"
MANAGERS_PROVEN: Final = "managers-proven"
_TRUE: Final = b"true"


def owner_key_key(namespace: str, name: str) -> ObjectKey:
    """The Secret of an operator of this name."""
    return ObjectKey("", "Secret", namespace, f"{name}-owner-key")


ATTEMPTS: Final = 5
PAUSE: Final = 0.5  # seconds between two attempts to create the Secret


class OwnerKey:
    """The key, as far as it is known."""

    def __init__(
        self,
        store: StoredData,
        *,
        changed: Callable[[], None] = lambda: None,
        upgrading: Callable[[], bool] = lambda: False,
        dry_run: bool = False,
    ) -> None:
        """`changed` is called when other annotations than before are believed. `upgrading`: whether annotations may be
        older than the key. A dry run makes no key."""
        self.store = store
        self.changed = changed
        self.dry_run = dry_run
        self.upgrading = upgrading
        self.unsettled = asyncio.Event()  # there may be annotations to write again
        self.log = structlog.get_logger()
        self._proofs = KeyedProofs()
        self._version = ""
        self._loading = asyncio.Lock()

    def proofs(self) -> KeyedProofs | None:
        """None in a dry run without a key: annotations are believed by their text, as in offline commands."""
        return None if self.dry_run and not self._proofs.keys else self._proofs

    async def ensure(self) -> None:
        """Returns when the key is known. Usually it is, and the call costs nothing."""
        if not self._proofs.keys and not self.dry_run:
            async with self._loading:
                if not self._proofs.keys:
                    await self.load()

    async def load(self) -> None:
        """Reads the Secret, or creates it. Raises RuleopError."""
        found, is_new = await self._read(), False
        if found is None and not self.dry_run:
            found, is_new = await self._create()
        proofs = read_proofs(found) if found is not None else KeyedProofs()
        known, self._proofs = self._proofs, proofs
        self._version = found["metadata"]["resourceVersion"] if found is not None else ""
        if proofs.accept_unproven or proofs.accept_unproven_managers or len(proofs.keys) > 1:
            self.unsettled.set()
        if known.keys and known != proofs:
            self.log.info("the owner key was replaced; listing the children again")
        if known != proofs and not is_new:
            self.changed()

    async def _read(self) -> Object | None:
        try:
            return await self.store.read()
        except ApiError as error:
            if self.dry_run and error.problem is Problem.FORBIDDEN:
                return None
            raise

    async def _create(self) -> tuple[Object, bool]:
        """The Secret, and whether no annotation can have been believed by it before."""
        mark = ACCEPT_UNPROVEN if self.upgrading() else MANAGERS_PROVEN
        data = {KEY: secrets.token_bytes(KEY_LENGTH), mark: _TRUE}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                made = await self.store.write(_encoded(data), "")
            except ApiError as error:  # one refusal of a token that has just been renewed is not the last word
                if error.problem is not Problem.UNAUTHORIZED or attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(PAUSE)
                continue
            if made is not None:
                self.log.info("owner key created", accept_unproven=ACCEPT_UNPROVEN in data)
                return made, ACCEPT_UNPROVEN not in data
            found = await self.store.read()
            if found is not None:  # another replica was faster
                return found, False
            await asyncio.sleep(PAUSE)
        raise RuleopError("the Secret with the owner key exists when it is created, and does not when it is read")

    async def settle(self) -> bool:
        """All annotations and managers have been written with the current key: from now on, no other is believed. False
        if the Secret was changed meanwhile."""
        key = self._proofs.keys[0]
        written = await self.store.write(_encoded({KEY: key, MANAGERS_PROVEN: _TRUE}), self._version)
        if written is None:
            await self.load()
            return False
        self._version = written["metadata"]["resourceVersion"]
        self._proofs = KeyedProofs((key,))
        self.unsettled.clear()
        return True


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(value).decode() for name, value in data.items()}


def read_proofs(secret: Object) -> KeyedProofs:
    data: Mapping[str, Any] = secret.get("data") or {}
    keys = [_decoded(secret, data, name) for name in (KEY, PREVIOUS_KEY) if name == KEY or name in data]
    accept = ACCEPT_UNPROVEN in data
    return KeyedProofs(tuple(keys), accept, accept_unproven_managers=accept or MANAGERS_PROVEN not in data)


def _decoded(secret: Object, data: Mapping[str, Any], name: str) -> bytes:
    try:
        found = base64.b64decode(str(data.get(name, "")), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) < KEY_LENGTH:
        where = f"{secret['metadata'].get('namespace')}/{secret['metadata'].get('name')}"
        raise RuleopError(
            f"the Secret {where} has no valid `{name}` ({KEY_LENGTH} bytes): restore the Secret, or delete it"
        )
    return found
