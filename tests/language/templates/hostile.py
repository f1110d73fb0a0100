"""Strings that have broken templates, loaders and parsers."""

LINE_BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
HOSTILE = [
    "",
    " ",
    "\t",
    *(f"a{line_break}evil: true" for line_break in LINE_BREAKS),
    *(f"{line_break}- evil" for line_break in LINE_BREAKS),
    *LINE_BREAKS,
    "a\n\n\nb\n", "a\n   b\n  c", "\n---\nkind: Evil\n", "---", "...", "\n...\n", "%YAML 1.1", "--- !!str",
    "a: b", "a : b", "a:", ": b", "a #b", "# a", "- a", "? a", "-", "?", ":", "!", "!!python/object/apply:os.system ['id']", "!tag a", "&a", "*a", "&a b",
    "<<", "<<: *a", "=", "|", "|+", ">", ">-2", "| a", "{", "}", "[", "]", ",", "{}", "[]", "{a: b}", "[a, b]", "}, {", "], [", "a, b: c",
    "'", '"', "''", '""', "\\", "\\n", "\\u0041", "'; evil: true", '"\nevil: "true', '", evil: "true', "`a", "@a", "%a",
    "{{ evil }}", "{% evil %}", "{# evil #}", "#}", "}}", "{%", "${#a}", "{{ 7*7 }}",
    "\ufdd0", "\ufdd0\x30\ufdd1", "\ufdd2\x30\ufdd1: 0", "- \ufdd2\x30\ufdd1", "#\ufdd2\x30\ufdd1", "\ufdd1", "\ufdd2", "\ufdd0\x31\ufdd1", "\ufdd0\x39\x39\x39\ufdd1",
    "\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x7f", "\x80", "\x9f", "\ufeff", "\ufffe", "\uffff", "\ue000", "\ue001", "\U0010ffff",
    "\ud800", "\udfff", "a\udc80b", "\U0001f600", "\u202eevil", "\u200b", "e\u0301",
    "yes", "no", "on", "off", "y", "n", "true", "false", "True", "NO", "null", "Null", "~", "None", "0x1F", "0o17", "017", "0b1", "1_000", "12:30:45",
    "2024-01-01", "2024-01-01T00:00:00Z", ".inf", "-.inf", ".nan", "1e3", "1.20", "1.", ".5", "+1", "-0", "0", "1", "9" * 30,
    "apiVersion: v1\nkind: Secret", "a" * 1_000_000,
]  # fmt: skip
