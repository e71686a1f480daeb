"""Where attacks were left out for the budget, the result says which budget has room for all."""

import numpy as np
import pandas as pd

import ldpaudit


def test_the_budget_that_is_named_has_room_for_every_attack() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 300)
    released = np.where(rng.random(300) < 0.25, 1 - truth, truth)
    frame = pd.DataFrame({"x": truth + rng.standard_normal(300), "label": released})
    claim = {"name": "randomized-response", "epsilon": 1.0}

    def audited(budget: float) -> ldpaudit.AuditResult:
        only = ("label-inference",)
        return ldpaudit.audit(
            frame, truth=truth, mechanism=claim, rng=1, only=only, budget=budget, threads=1
        )

    short = audited(0.0)
    needed = short.estimate("attack.budget_needed")
    assert needed is not None
    assert any("do not fit into the 0 s" in note.text for note in short.notes)
    enough = audited(needed.value + 1e-6)
    assert enough.estimate("attack.budget_needed") is None
    assert not any("do not fit" in note.text for note in enough.notes)
