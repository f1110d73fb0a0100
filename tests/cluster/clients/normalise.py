"""Outputs of clients without what differs from one cluster to the next: names that are generated, times, addresses."""

from __future__ import annotations

import re
from typing import Final

_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"  # the letters of generated names
_RULES: Final = [
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # The client ended a watch while it read it, and logs that, but not always.
        (r'^E\d{4} .*"Unexpected error when reading response body" err="context canceled"\n', ""),
        (r'^I\d{4} .*"Warning: watch ended with error" .*context canceled.*\n', ""),
        (r"^W\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?=\w+\.go:)", "WARNING "),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00:00", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} UTC( m=\S+)?", "TIME"),
        (r"\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}", "TIME"),
        (r"https?://127\.0\.0\.1:\d+(/[\w-]{32}(?=/|\s|\"|$))?", "SERVER"),
        (r'(resourceVersion: ?")\d+"', r'\1VERSION"'),
        (r'("resource_?[vV]ersion": ?")\d+"', r'\1VERSION"'),
        (r"(Resource Version: +)\d+", r"\1VERSION"),
        (r"\b127\.0\.0\.1:\d+", "SERVER"),
        (r"\(x\d+ over \w+\)", "(REPEATED)"),
        (r"\bv1\.36\.0\+ruleop|kwok-\S+", "KUBELET"),
        (r"(?<=[ :])3[0-2]\d{3}(?=/TCP|$|\s)", "NODE-PORT"),
        (r"\b(10|192)\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"\b(node-1|local-node)\b", "NODE"),
        (rf"(?<=-)[{_SAFE}]{{6,10}}(-[{_SAFE}]{{5}})?\b", "NAME"),
        (rf"(pod-template-hash(=|: |\":\"|\": \"))[{_SAFE}]{{6,10}}\b", r"\1HASH"),
        (rf"\b(first|second|one|web|agent|once|from-nightly|settings|kube-api-access|db)-[{_SAFE}]{{5}}\b", r"\1-NAME"),
        (r"(?<![^ (\n])(\d+d)?(\d+h)?(\d+m)?\d+m?s(?=$|[ )])", "AGE"),
        (r"<invalid>", "AGE"),
        # What cannot be decoded is described in words of the server in memory, at the same field.
        (r"(cannot be handled as an? \w+: )(?!strict).*", r"\1PROBLEM"),
        (r"(The request is invalid: patch: ).*", r"\1PROBLEM"),
        (r"(is invalid: spec\.\w+: Invalid value: )(?=.*(in body |must ))[^\n]*", r"\1PROBLEM"),
        (r"^(\* spec\.\w+: Invalid value: )(?=.*(in body |must )).*", r"\1PROBLEM"),
        (r"(: expected [^:]*), got .*", r"\1"),
        (r"(?<=\S) {2,}", "  "),
        (r" +$", ""),
        (r"(--- |\+\+\+ |diff -u -N ).*", r"\1FILE"),
    )
]


def normalised(text: str) -> str:
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
