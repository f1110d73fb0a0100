"""Marks that stand for values and blocks in a text that is read as YAML.

They consist of noncharacters (U+FDD0..U+FDD2, which Unicode reserves for internal use). A template that contains one is
rejected when it is loaded, and values are never part of the text, so every mark stands for a place in a template. There
are two forms: a value, at any position, and what is alone on its line, as a key with a value or as an item, so that it
matches its neighbours.
"""

from __future__ import annotations

import re
from typing import Final

OPEN, CLOSE, ALONE = "\ufdd0", "\ufdd1", "\ufdd2"
RESERVED: Final = re.compile("[\ufdd0-\ufdd2]")
VALUE: Final = re.compile(f"{OPEN}([0-9]+){CLOSE}")
SPREAD: Final = re.compile(f"{ALONE}([0-9]+){CLOSE}")
