"""From a request to a response: routes, verbs, watches, discovery, and errors as the real server words them."""

from ruleop.localcluster.api.api import Api
from ruleop.localcluster.api.audit import LOCAL_ADMIN, Audit, Users
from ruleop.localcluster.api.faulty import Effect, Fault, Faults, FaultyApi
from ruleop.localcluster.api.object_checks import with_defaults
from ruleop.localcluster.api.object_deletion import FOREGROUND, ORPHAN, is_finished
from ruleop.localcluster.api.object_writer import CONTROLLERS, SUFFIX_LETTERS, ObjectWriter
from ruleop.localcluster.api.options import DeleteOptions, WriteOptions
from ruleop.localcluster.api.responses import refusal

__all__ = [
    "CONTROLLERS",
    "FOREGROUND",
    "LOCAL_ADMIN",
    "ORPHAN",
    "SUFFIX_LETTERS",
    "Api",
    "Audit",
    "DeleteOptions",
    "Effect",
    "Fault",
    "Faults",
    "FaultyApi",
    "ObjectWriter",
    "Users",
    "WriteOptions",
    "is_finished",
    "refusal",
    "with_defaults",
]
