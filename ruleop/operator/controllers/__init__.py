"""A controller for each kind of custom resource: which events become passes of its custom resources."""

from ruleop.operator.controllers.controller_set import Controller, Controllers, ControllerSet
from ruleop.operator.controllers.discovery_sync import DiscoverySync
from ruleop.operator.controllers.event_handler import EventHandler
from ruleop.operator.controllers.inventory import (
    NOTHING,
    Inventory,
    InventoryEntry,
    decode,
    encode,
    entry_of_rules,
    inventory_key,
)

__all__ = [
    "NOTHING",
    "Controller",
    "ControllerSet",
    "Controllers",
    "DiscoverySync",
    "EventHandler",
    "Inventory",
    "InventoryEntry",
    "decode",
    "encode",
    "entry_of_rules",
    "inventory_key",
]
