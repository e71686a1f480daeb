"""What a result says of the release and its claim."""

from typing import Any, Literal

from ldpaudit.result.checks import CheckLevel, IsoDate
from ldpaudit.result.estimate import Curve, Estimate, Frozen, Identifier, Number


class BeforeNoise(Frozen):
    """Which feature columns are known to be from before the noise, by name.

    Attributes
    ----------
    truth
        Those that the truth file holds with equal values.
    named
        Those that an option or the policy names.
    declared
        Those that the file's declaration names.
    unknown
        All others: they may have been computed from released labels.
    """

    truth: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class ReleaseInfo(Frozen):
    """What was audited.

    Attributes
    ----------
    name
        The name of the released file, without its folder.
    sha256
        The digest of the released file, of several that of their digests; None for a table in
        memory and for a file with true labels in it.
    rows
        Rows that were audited.
    features
        Columns of features.
    classes
        Different labels.
    class_names
        The labels, in the order in which ids such as class-2 count them; none of several columns.
    label
        The name of the released column, of a stratum its value; null of several columns.
    truth
        Whether true labels were given.
    before
        Which feature columns are known to be from before the noise; null of several releases, and
        in the public form.
    """

    name: str
    sha256: str | None
    rows: int
    features: int
    classes: int
    class_names: tuple[str, ...]
    label: str | None
    truth: bool
    before: BeforeNoise | None = None


class MechanismInfo(Frozen):
    """The mechanism as declared, with its exact privacy parameter.

    Attributes
    ----------
    name
        Its name; ``unknown`` where nothing is claimed.
    declared
        Where the claim comes from.
    parameters
        Its declaration.
    epsilon
        Its exact ε in nats; None where it has none.
    description
        One phrase with every parametrisation.
    """

    name: str
    declared: Literal["file", "options", "policy", "api"] | None
    parameters: dict[str, Any]
    epsilon: Number | None
    description: str = ""


class Question(Frozen):
    """What a policy asks, and its limits: made of the policy alone.

    Attributes
    ----------
    check
        The name of the check in policies.
    text
        What it looks at.
    limits
        The keys of the policy that limit it, with their values.
    level
        Whether it decides (error) or only warns.
    accepted_until
        The last day on which the policy accepts a violation in this very file.
    """

    check: Identifier
    text: str
    limits: dict[str, Number | str]
    level: CheckLevel
    accepted_until: IsoDate | None = None


class PublicFacts(Frozen):
    """What everybody may see of a release and its claim: computed without any true label.

    Attributes
    ----------
    release
        What the released file shows.
    mechanism
        What was claimed.
    estimates
        Exact numbers of the claim.
    curves
        Exact curves of the claim.
    excess
        An excess of ε over the claim that true labels would show with 90 % power, in nats, with
        each class as small as the released labels allow at 95 % confidence; None where it is not
        known.
    questions
        What the policy asks.
    left_out
        The audits that the options left out.
    """

    release: ReleaseInfo
    mechanism: MechanismInfo
    estimates: tuple[Estimate, ...] = ()
    curves: tuple[Curve, ...] = ()
    excess: Number | None = None
    questions: tuple[Question, ...] = ()
    left_out: tuple[str, ...] = ()
