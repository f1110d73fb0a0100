"""The three-way merge of an object that several parties write to, without I/O and without knowledge of rules.

`three_way` merges the desired state into the live object, given the fields that ruleop applied last. `merge_patch`
computes the request body. `Record` is what ruleop stores on the object, and `Learned` is what it keeps in memory of the
server's answers.
"""

from ruleop.kubernetes.merge.equality import same
from ruleop.kubernetes.merge.fields import FieldSet
from ruleop.kubernetes.merge.ignored import as_sent
from ruleop.kubernetes.merge.lists import MergeError
from ruleop.kubernetes.merge.patch import merge_patch, merge_patched
from ruleop.kubernetes.merge.path import Path, PathError, PathSelector, parse_path
from ruleop.kubernetes.merge.record import ANNOTATION, Record, RecordTooLargeError, decode, encode
from ruleop.kubernetes.merge.server_changes import Learned, UnwritableError, normalise_desired, normalise_ignored
from ruleop.kubernetes.merge.three_way import Merged, create_fields, three_way

__all__ = [
    "ANNOTATION",
    "FieldSet",
    "Learned",
    "MergeError",
    "Merged",
    "Path",
    "PathError",
    "PathSelector",
    "Record",
    "RecordTooLargeError",
    "UnwritableError",
    "as_sent",
    "create_fields",
    "decode",
    "encode",
    "merge_patch",
    "merge_patched",
    "normalise_desired",
    "normalise_ignored",
    "parse_path",
    "same",
    "three_way",
]
