"""Joint mechanisms: every stated ε against the enumerated channel, and draws against it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.mechanisms import RandomizedResponse, joint
from ldpaudit.mechanisms.joint import (
    IndependentColumns,
    JointMechanism,
    OnDomains,
    from_declaration,
)
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

DOMAINS = (("a", "b"), ("c", "d", "e"), ("f", "g", "h", "i"))
SHAPES = ((2, 2), (2, 3), (5, 2), (3, 3, 3), (2, 3, 4), (2, 7, 2))


def _domains(sizes: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"{j}.{i}" for i in range(k)) for j, k in enumerate(sizes))


def _mechanisms(sizes: tuple[int, ...]) -> list[JointMechanism]:
    domains = _domains(sizes)
    columns = [RandomizedResponse.from_epsilon(d, 0.5 + j) for j, d in enumerate(domains)]
    return [
        IndependentColumns(tuple(columns)),
        JointRR(domains, 1.3),
        RandomSampling(domains, 0.8),
        RandomSampling(domains, 2.5),
    ]


CASES = [pytest.param(m, s, id=f"{m.name}-{s}") for s in SHAPES for m in _mechanisms(s)]


@pytest.mark.parametrize(("mechanism", "sizes"), CASES)
def test_all_follows_from_the_enumerated_channel(
    mechanism: JointMechanism, sizes: tuple[int, ...]
) -> None:
    """ε of the vector; of a column the others fixed; marginals; and what is independent."""
    channel, d = mechanism.channel(), len(sizes)
    assert channel is not None
    matrix = channel.matrix
    assert mechanism.epsilon == pytest.approx(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())
    # One axis for each true column, then one for each released column.
    tensor = matrix.reshape(*sizes, *sizes)
    product = np.ones_like(tensor)
    for j, column in enumerate(mechanism.columns):
        own = column.channel.matrix  # type: ignore[attr-defined]
        ratios = np.log(tensor.max(axis=j) / tensor.min(axis=j))
        assert mechanism.epsilon_of(j) == pytest.approx(ratios.max())
        sums = tensor.sum(axis=tuple(d + i for i in range(d) if i != j))
        for row in np.moveaxis(sums, j, -2).reshape(-1, sizes[j], sizes[j]):
            assert row == pytest.approx(own)
        shape = [sizes[j] if i in (j, d + j) else 1 for i in range(2 * d)]
        product = product * own.reshape(shape)
    assert np.allclose(product, tensor) is mechanism.independent


def test_random_sampling_claims_no_more_than_holds() -> None:
    """Equal domains: the published ε for a known rest. Unequal ones: more for the larger."""
    equal, unequal = RandomSampling(_domains((3, 3, 3)), 1.0), RandomSampling(DOMAINS, 1.0)
    assert [equal.epsilon_of(j) for j in range(3)] == pytest.approx([1.0] * 3)
    assert equal.epsilon == pytest.approx(math.log(3 * (math.e - 1) + 1))
    assert unequal.epsilon_of(0) < 1 < unequal.epsilon_of(2) < unequal.epsilon
    assert "does not hold for 2 of 3 columns" in unequal.remarks()[1]
    assert "exactly the published ε" in equal.remarks()[1]
    assert not any(label in " ".join(unequal.remarks()).split() for d in DOMAINS for label in d[1:])


def test_a_product_domain_too_large_to_count_keeps_its_closed_forms() -> None:
    mechanism = JointRR(_domains((1000, 1000, 1000)), 2.0)
    assert mechanism.channel() is None
    assert mechanism.epsilon == 2.0
    assert mechanism.columns[0].epsilon == pytest.approx(
        math.log1p(1e3 / 1e9 * math.expm1(2)), rel=1e-6
    )
    assert mechanism.sample(np.zeros((5, 3), dtype=np.int32)).shape == (5, 3)
    with pytest.raises(InputError, match="next to nothing would be kept"):
        JointRR(_domains((1000,) * 6), 2.0)


def _vector(joint: Declaration | None = None, **by: str) -> ColumnsDeclaration:
    rr = Declaration("randomized-response", {"epsilon": 1.0})
    return ColumnsDeclaration(
        tuple(LabelDeclaration(x, None if joint else rr, by.get(x)) for x in "uv"), joint
    )


def test_declarations_rebuild_the_mechanism() -> None:
    classes = (("a", "b"), ("c", "d", "e"))
    independent = from_declaration(_vector(), classes)
    assert independent.independent
    assert independent.epsilon == pytest.approx(2.0)
    for family in (JointRR, RandomSampling):
        built: OnDomains = family(classes, 0.7)
        stated = Declaration(family.name, dict(built.declaration()))
        assert from_declaration(_vector(stated), classes) == built
        short = Declaration(family.name, {"epsilon": 0.7})
        assert from_declaration(_vector(short), classes) == built


def test_a_joint_mechanism_of_another_package_has_an_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SamplingOfOthers(RandomSampling):
        name = "sampling-of-others"

    points = {
        SamplingOfOthers.name: SimpleNamespace(module="others", load=lambda: SamplingOfOthers),
        "misnamed": SimpleNamespace(module="others", load=lambda: RandomSampling),
    }
    monkeypatch.setattr(joint, "added", lambda kind, built_in: points)
    assert joint.joint_family("sampling-of-others") is SamplingOfOthers
    with pytest.raises(InputError, match="calls itself 'rs-fd'"):
        joint.joint_family("misnamed")
    with pytest.raises(InputError, match="does not release several columns"):
        joint.joint_family("laplace")
