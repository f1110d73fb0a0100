"""What becomes of an object on which several parties write: the pure half of applying a child.

`three_way` merges what we want into what is live, by what we applied last; `merge_patch` says how to ask the server for the result;
`Record` is what we remember on the object, and `Learned` what we remember of the server's answers. No I/O, and nothing about rules.
"""

from ruleop.merge.creation import create_fields
from ruleop.merge.equality import same
from ruleop.merge.fields import FieldSet
from ruleop.merge.ignored import as_sent
from ruleop.merge.learned import Learned
from ruleop.merge.lists import MergeError
from ruleop.merge.normalise import UnwritableError, normalise_ignored, normalise_wanted
from ruleop.merge.patch import merge_patch
from ruleop.merge.path import Path, PathError, Selector, parse_path
from ruleop.merge.record import ANNOTATION, Record, RecordTooLargeError, decode, encode
from ruleop.merge.three_way import Merged, three_way

__all__ = [
    "ANNOTATION",
    "FieldSet",
    "Learned",
    "MergeError",
    "Merged",
    "Path",
    "PathError",
    "Record",
    "RecordTooLargeError",
    "Selector",
    "UnwritableError",
    "as_sent",
    "create_fields",
    "decode",
    "encode",
    "merge_patch",
    "normalise_ignored",
    "normalise_wanted",
    "parse_path",
    "same",
    "three_way",
]
