"""How a loss takes the declared mechanism into account."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.commands.utility.companions import row_likelihood
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import ExplicitChannel, Mechanism, family, from_declaration
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.capabilities import LabelByStratum, SyntheticFeatures
from ldpaudit.models.corrections import Noise
from ldpaudit.release import FloatArray, Release

TRUE: Final = "the true labels"
_RAW: Final = "released labels taken at their word: no correction is known for the mechanism"
_FORWARD: Final = "log-loss through the declared channel"
_STRATA: Final = "log-loss through the declared channels of the strata"
AVERAGED: Final = "log-loss through the average of the strata's declared channels"
_UNBIASED: Final = "unbiased log-loss of double randomized response, with its synthetic rows"
FIRST_TERM: Final = (
    "the first term of the unbiased log-loss of double randomized response, which does better on "
    "rows held out than the whole loss"
)
_LABEL_ONLY: Final = (
    "log-loss through the label's channel; synthetic rows taken for real ones, since the synthetic "
    "table is not given (--synthetic)"
)
_SQUARED: Final = "squared loss, unbiased under the declared mechanism"
_NO_INVERSE: Final = "squared loss of the released number, whose bias cannot be undone"
_NO_GAIN: Final = "squared loss of the released number: undoing its bias would add more error"
IWP: Final = "inverse-Weierstrass loss of the declared mechanism"


@dataclass(frozen=True)
class LossCorrection:
    """How the loss takes the mechanism into account; ``words`` say it to people.

    ``likelihood``: P(released | y) of each row, where rows have channels of their own.
    """

    noise: Noise | None
    name: Any
    words: str
    likelihood: FloatArray | None = None


def correction_for(release: Release) -> LossCorrection:
    """Return the correction of a loss of classes that fits the declared mechanism.

    Raises
    ------
    InputError
        If the claim's labels are not those of the release.
    """
    claim = from_declaration(release.declaration, release.classes)
    double, strata = claim.offers(SyntheticFeatures), claim.offers(LabelByStratum)
    if double is not None and release.synthetic is not None:
        stated = {**double.declaration(), "classes": list(release.classes)}
        ordered = family(double.name).from_parameters(stated, ()).offers(SyntheticFeatures)
        return LossCorrection(ordered, "unbiased", _UNBIASED)
    if strata is not None and release.strata is not None:
        return _by_stratum(release, strata)
    channel = aligned_channel(AuditContext(release, claim, Plan(seed=0)))
    if channel is None:
        return LossCorrection(None, None, _RAW)
    words = _LABEL_ONLY if double is not None else _FORWARD
    return LossCorrection(channel, "forward", words)


def _by_stratum(release: Release, claim: LabelByStratum) -> LossCorrection:
    assert release.strata is not None
    shares = np.bincount(release.strata.codes, minlength=release.strata.count) / len(release)
    averaged = ExplicitChannel(claim.averaged(shares))
    channel = aligned_channel(AuditContext(release, averaged, Plan(seed=0)))
    return LossCorrection(channel, "forward", _STRATA, row_likelihood(release, claim))


def bias_correction(claim: Mechanism, released: FloatArray, columns: int) -> LossCorrection:
    """Return the correction of a squared loss that fits the declared mechanism.

    Undoing a bias adds variance. A linear model with p columns on n rows averages over rows: the
    variance of its labels enters its error p/n times, their squared bias whole. So a bias is undone
    where that lowers the sum, at the mechanism's exact bias and variance of the released labels.

    Parameters
    ----------
    claim : Mechanism
        On numeric labels.
    released : float64 array of shape (n,)
    columns : int
        p.
    """
    from ldpaudit.models.corrections import debiased_labels, unbiased_values

    claim = claim.after_rounding
    try:
        debiased_labels(released, claim)
    except InputError:
        return LossCorrection(None, None, _NO_INVERSE)
    errors, channel = label_errors(claim), claim.channel
    if channel is not None and errors is not None and not errors.unbiased:
        added = channel.matrix @ unbiased_values(channel) ** 2 - errors.labels**2 - errors.variance
        gain, order = errors.bias**2 - columns / len(released) * added, np.argsort(errors.labels)
        if np.interp(released, errors.labels[order], gain[order]).mean() <= 0:
            return LossCorrection(None, None, _NO_GAIN)
    return LossCorrection(claim, "unbiased", _SQUARED)
