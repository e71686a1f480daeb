import pytest
from compared_releases import Files, make


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return make(tmp_path_factory.mktemp("compared"))
