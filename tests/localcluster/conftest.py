import pytest

from tests.localcluster.play import Play


@pytest.fixture
def play():
    """A cluster without HTTP, which works only when asked."""
    return Play()
