"""Hadamard response: each person reports a column of a matrix of ±1 in which their row is +1."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.doors import (
    Channel,
    InputError,
    LocalReports,
    Parameter,
    Traits,
    check_classes,
    check_epsilon,
)


@dataclass(frozen=True)
class HadamardReports(LocalReports):
    """A report has probability e^ε/(e^ε + 1) to be of the half of columns that fit the label."""

    # Acharya, Sun & Zhang (2019), Hadamard response, section 4, with one row for each label.
    traits = Traits(
        name="hadamard-reports",
        title="Hadamard response",
        labels="classes",
        outputs="reports",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=(),
        stated_by=("epsilon",),
        whole=True,
        needs=frozenset(),
    )

    declared = (Parameter("classes", check_classes), Parameter("epsilon", check_epsilon))

    classes: tuple
    epsilon: float

    channel = None
    report_kind = "numbers"

    @property
    def description(self):
        return f"Hadamard response on {len(self.classes)} labels: ε = {self.epsilon:.6g} nats"

    @property
    def _size(self):
        # Row 0 is +1 everywhere, so the labels have the rows from 1.
        return 1 << len(self.classes).bit_length()

    def _fits(self, reports, codes):
        common = (codes + 1) & reports[:, 0]
        return np.array([bin(one).count("1") % 2 == 0 for one in common])

    @property
    def compared(self):
        k, size = len(self.classes), self._size
        codes, columns = np.repeat(np.arange(k), size), np.tile(np.arange(size), k)
        fits = self._fits(columns[:, None], codes).reshape(k, size)
        likely = 1 / (1 + np.exp(-self.epsilon))
        matrix = np.where(fits, likely, 1 - likely) * 2 / size
        return Channel(matrix, self.classes, tuple(range(size)))

    @property
    def label_channel(self):
        return None

    def check(self, reports):
        whole = np.asarray(reports).astype(np.int64)
        possible = (whole == reports) & (whole >= 0) & (whole < self._size)
        if whole.shape[1] != 1 or not possible.all():
            raise InputError(f"{int((~possible).sum())} reports are no columns of the matrix.")
        return whole

    def labels(self, reports, rng):
        codes = np.arange(len(self.classes))
        fits = np.array([self._fits(reports, np.full(len(reports), code)) for code in codes]).T
        fits |= ~fits.any(axis=1, keepdims=True)
        return np.where(fits, rng.random(fits.shape), -1).argmax(axis=1).astype(np.int32)

    def log_ratio(self, reports, first, second):
        one, other = self._fits(reports, first), self._fits(reports, second)
        return self.epsilon * (one.astype(float) - other)
