import pytest

from ldpaudit.audits.seeds import audit


@pytest.fixture(autouse=True)
def _fewer_counted_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 4,096 seeds be counted through instead of 32,768: eight times as fast."""
    if not request.node.get_closest_marker("validate"):
        monkeypatch.setattr(audit, "COUNTED", 1 << 12)
