"""A small table with two private columns, and calls of the command line in this process."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ldpaudit import cli


def table(rows: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, rows)
    x = rng.standard_normal((rows, 2)) + 0.9 * codes[:, None]
    return pd.DataFrame(
        {"x 1": x[:, 0], "y": x[:, 1], "ill": np.array(["no", "yes"])[codes], "weeks": codes * 7}
    )


def called(*words: str) -> SimpleNamespace:
    """Call the command line in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ldpaudit", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return SimpleNamespace(status=ended.value.code)
