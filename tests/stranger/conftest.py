"""A package with parts of its own, and broken ones."""

import os
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from installing import forget, register
from processes import called

HERE = Path(__file__).parent
ROWS = 500
MECHANISM = ("--mechanism", "randomized-response", "--epsilon", 1.0)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the package in ``tests/stranger`` as its own file says."""
    content = tomllib.loads((HERE / "pyproject.toml").read_text())
    project, modules = content["project"], content["tool"]["setuptools"]["py-modules"]
    site = tmp_path_factory.mktemp("site")
    for module in modules:
        shutil.copy(HERE / f"{module}.py", site)
    register(site, project["name"], project["entry-points"])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        # The sweep's processes find it too.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(site), *filter(None, sys.path)]))
        forget()
        yield site
    forget()
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def command(installed, monkeypatch):
    monkeypatch.setenv("LDPAUDIT_THREADS", "1")
    return called


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, ROWS)
    table = {"x": rng.standard_normal(ROWS) + codes, "z": rng.standard_normal(ROWS)}
    table["town"] = np.array(["Ahn", "Wiltz"])[rng.integers(0, 2, ROWS)]
    names = np.array(["no", "perhaps", "yes"])[codes]
    path = tmp_path / "data.parquet"
    pd.DataFrame(table | {"label": names}).to_parquet(path)
    return path


@pytest.fixture
def broken(installed):
    """Register parts of a package that is broken."""
    place = installed / "broken_parts.py"
    shutil.copy(HERE / "broken_parts.py", place)
    made = []

    def register_broken(kind, entries, name="broken"):
        made.append(register(installed, name, {f"ldpaudit.{kind}s": entries}))
        forget()

    yield register_broken
    for info in made:
        shutil.rmtree(info)
    place.unlink()
    sys.modules.pop("broken_parts", None)
    forget()


@pytest.fixture
def pipe(command, data, tmp_path):
    """Return a release that only the stranger's reader reads, and the true labels in another."""
    release = tmp_path / "released.parquet"
    words = ("--experimental", "--seed", 4)
    assert command("privatize", data, "-o", release, *MECHANISM, *words)[0] == 0
    for source, target in ((release, "released.pipe"), (data, "truth.pipe")):
        pd.read_parquet(source).to_csv(tmp_path / target, sep="|", index=False)
    return tmp_path / "released.pipe"
