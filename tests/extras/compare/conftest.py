import pytest
from compared_releases import make


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return make(tmp_path_factory.mktemp("compared"))
