"""Without the part that draws noise again: one line for a release with a receipt, no other."""

import numpy as np
import pytest
from processes import called, refused

from ldpaudit.commands.run.work import demo_tables, with_receipt
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.tables import DECLARATION_KEY
from ldpaudit.datasets.writing import write_release
from ldpaudit.mechanisms.keyed import KEY_BYTES, NoiseKey

NONE = "The release has a receipt, and this installation lacks what draws its noise again"
QUICK = ("--only", "mechanism", "--threads", "1")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setattr("ldpaudit.receipt.seam.ours", lambda kind: {})
    monkeypatch.chdir(tmp_path)


def written(receipt):
    """Leave an honest release and its true labels here, with a receipt or without."""
    honest, _, truth = demo_tables(0)
    assert not parse_declaration(honest.schema.metadata[DECLARATION_KEY]).receipt
    if receipt:
        honest, truth = with_receipt(
            honest, truth, NoiseKey(np.arange(KEY_BYTES, dtype="u1").tobytes())
        )
    write_release(honest, "release.parquet")
    write_release(truth, "truth.parquet")


def test_a_release_with_a_receipt_gets_a_line(tmp_path):
    written(receipt=True)
    said = refused("run", "release.parquet", "--truth", "truth.parquet", *QUICK, folder=tmp_path)
    assert said.startswith(f"ldpaudit: {NONE}")


@pytest.mark.parametrize("receipt", [False, True], ids=["no receipt", "no true labels"])
def test_all_else_is_audited(receipt):
    written(receipt)
    truth = () if receipt else ("--truth", "truth.parquet")
    status, printed = called("run", "release.parquet", *truth, *QUICK)
    assert status in (0, 3), printed
