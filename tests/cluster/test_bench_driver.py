"""The measuring client of `make bench-cluster` has tests of its own, in Go."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_server("Go, and no server")

DRIVER = Path(__file__).parents[2] / "bench/driver"


def test_the_driver_passes_its_own_tests():
    environ = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    ran = subprocess.run(["go", "test", "./..."], cwd=DRIVER, capture_output=True, text=True, env=environ, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
