"""What the outputs of a joint release are called: the releases' outputs, one after the other."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, Label
from ldpaudit.reports.text.numbers import exactly

_MOST: Final = 4096
"""Combinations of outputs up to which each is looked at."""
_SAME: Final = 1e-9
_NAMED: Final = ("classes", "outputs")
"""What in a declaration holds labels."""


Called = Mapping[Label, str]
"""What labels and outputs are called that must not be shown."""


def with_names(joint: Channel, channels: Sequence[Channel], called: Called) -> Channel | None:
    """Return the joint channel with an output named by each combination that it stands for.

    Parameters
    ----------
    joint : Channel
        The product of the channels; combinations that tell the same are one output of it.
    channels : sequence of Channel
        Of the releases, of the labels of ``joint`` in any order.
    called : mapping

    Returns
    -------
    Channel or None
        None where there are too many combinations to name them.
    """
    if math.prod(len(channel.outputs) for channel in channels) > _MOST:
        return None
    shapes = _shape(joint.matrix)
    found: list[list[str]] = [[] for _ in joint.outputs]
    rows = [[channel.classes.index(label) for label in joint.classes] for channel in channels]
    for places in product(*(range(len(channel.outputs)) for channel in channels)):
        columns = [c.matrix[r, i] for c, r, i in zip(channels, rows, places, strict=True)]
        column = np.prod(columns, axis=0)
        if not column.any():
            continue
        near = np.abs(shapes - _shape(column[:, None])).max(axis=0)
        if near.min() < _SAME:
            outputs = (c.outputs[i] for c, i in zip(channels, places, strict=True))
            words = (called.get(output) or _text(output) for output in outputs)
            found[int(near.argmin())].append(", ".join(words))
    if not all(found):
        return None
    return Channel(joint.matrix, joint.classes, tuple(map(_name, found)))


def hidden(channel: Channel, called: Called) -> Channel:
    """Return the channel with its labels as they are called."""
    labels = tuple(called.get(label, label) for label in channel.classes)
    return Channel(channel.matrix, labels, channel.outputs)


def declared(content: Mapping[str, Any], called: Called) -> dict[str, Any]:
    """Return a declaration with labels and outputs as they are called."""
    names = {key: [called.get(v, v) for v in content[key]] for key in _NAMED if key in content}
    return {**content, **names}


def _shape(matrix: FloatArray) -> FloatArray:
    """Return what each output tells: the labels' probabilities under equal shares of the labels."""
    return np.asarray(matrix / matrix.sum(axis=0), dtype=np.float64)


def _name(alike: Sequence[str]) -> str:
    others = f" (or {len(alike) - 1} like it)" if len(alike) > 1 else ""
    return f"{alike[0]}{others}"


def _text(output: object) -> str:
    return exactly(output, 3) if isinstance(output, float) else str(output)
