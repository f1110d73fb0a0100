"""What the helpers of the tests assert says what it found, as an assertion in a test does."""

import pytest

pytest.register_assert_rewrite("tests.cluster", "tests.engine", "tests.invariants", "tests.kube", "tests.planning", "tests.projects")
