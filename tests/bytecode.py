"""Each process of a run compiles a part of the package and of the tests, and reads what the others compiled: pytest
adds explanations to each assertion of a test, which takes half of the time until the first test of a fresh clone."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

HERE = Path(__file__).parent


def compile_part(config: pytest.Config) -> None:
    """As pytest does when it imports them, but without running them."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or config.option.assertmode != "rewrite":
        return
    state = config.stash[rewrite.assertstate_key]
    first, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted((HERE.parent / "ruleop").rglob("*.py"))[first::workers]:
        compileall.compile_file(path, quiet=2)
    for path in sorted(HERE.rglob("test_*.py"))[first::workers]:
        compiled = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        if HERE / "cluster" not in path.parents and rewrite._read_pyc(path, compiled) is None:
            compiled.parent.mkdir(exist_ok=True)
            found, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, found, compiled)
