"""What is advised of mechanisms that use features."""

from judging.cases import evidence, judged

from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration


def test_a_mechanism_that_uses_features_needs_its_public_model():
    parameters = {"classes": [0, 1], "lambda": 0.3, "floor": 0.05}
    claim = from_declaration(Declaration("model-based-rr", parameters), (0, 1))
    step = judged(evidence(), claim=claim, truth=False).next_steps[0]
    assert "(--truth)" in step
    assert "(--public-posterior)" in step
    assert "--truth" not in judged(evidence(), claim=claim).next_steps[0]


def test_a_public_model_that_was_given_is_not_asked_for():
    parameters = {"classes": [0, 1], "lambda": 0.3, "floor": 0.05}
    claim = from_declaration(Declaration("model-based-rr", parameters), (0, 1))
    given = {"claim": claim, "public_model": True}
    step = judged(evidence(), truth=False, **given).next_steps[0]
    assert "(--truth)" in step
    assert "(--public-posterior)" not in step
    step = judged(evidence(), **given).next_steps[0]
    assert "drawn from the public model given" in step
