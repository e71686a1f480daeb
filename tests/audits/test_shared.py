"""Releases of one table share what depends on no released label, and nothing else."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from worlds import gaussian_release

from ldpaudit.audits.interface import AuditContext, Execution, Plan, Shared
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.release import Release, ReleasedLabels, TrueLabels

RELEASE, CLAIM = gaussian_release(400, 1.0, 3)


def context_of(release: Release, shared: Shared | None, seed: int = 1) -> AuditContext:
    return AuditContext(release, CLAIM, Plan(seed=seed), run=Execution(shared=shared))


def turned(release: Release) -> Release:
    return replace(release, released=ReleasedLabels(release.released[::-1].copy()))


def test_models_of_true_labels_are_fitted_once() -> None:
    shared = Shared()
    first = context_of(RELEASE, shared)
    other = context_of(turned(RELEASE), shared)
    posterior = cross_fitted_posterior(first, "truth")
    assert cross_fitted_posterior(other, "truth") is posterior
    alone = context_of(turned(RELEASE), None)
    assert (cross_fitted_posterior(alone, "truth") == posterior).all()
    released = [cross_fitted_posterior(one, "released") for one in (first, other)]
    assert (released[0] != released[1]).any()


@pytest.mark.parametrize("what", ["truth", "features", "seed"])
def test_nothing_is_shared_with_another_table(what: str) -> None:
    shared = Shared()
    before = cross_fitted_posterior(context_of(RELEASE, shared), "truth")
    release, seed = RELEASE, 1
    if what == "truth":
        truth = np.roll(RELEASE.truth, 1) if RELEASE.truth is not None else None
        assert truth is not None
        release = replace(release, truth=TrueLabels(truth))
    elif what == "features":
        release = replace(release, features=release.features.take(np.arange(400)[::-1]))
    else:
        seed = 2
    asked = context_of(release, shared, seed)
    assert cross_fitted_posterior(asked, "truth") is not before
    alone = cross_fitted_posterior(context_of(release, None, seed), "truth")
    assert (cross_fitted_posterior(asked, "truth") == alone).all()


def test_two_tables_are_kept_and_none_in_another_process() -> None:
    shared = Shared()
    kept = [shared.of(bytes([i])) for i in range(3)]
    assert shared.of(bytes([2])) is kept[2]
    assert shared.of(bytes([0])) is not kept[0]
    shared.numbers["a"] = 1
    assert not pickle.loads(pickle.dumps(shared)).numbers
