import pytest


@pytest.fixture(autouse=True)
def _columns_are_not_scanned(request: pytest.FixtureRequest) -> None:
    """Leave the search for columns that give labels away to tests with the mark ``scanned``.

    In `make validate` it always runs.
    """
    if not any(map(request.node.get_closest_marker, ("scanned", "validate"))):
        request.getfixturevalue("unscanned")
