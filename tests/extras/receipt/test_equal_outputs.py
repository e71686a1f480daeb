"""Which output a true number is: the nearest one, equal but for rounding."""

import numpy as np
import pytest

from ldpaudit.extras.receipt.drawing import _equal_outputs

OUTPUTS = (2.5, -1.0, 0.1, 7.0)


def test_each_output_is_itself_in_any_order():
    assert _equal_outputs(OUTPUTS, np.array([-1.0, 0.1, 2.5, 7.0])).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("shift", [1e-14, -1e-14])
def test_rounding_on_either_side_makes_no_other(shift):
    values = np.array(OUTPUTS) * (1 + shift)
    assert _equal_outputs(OUTPUTS, values).tolist() == [0, 1, 2, 3]


def test_what_is_no_output_has_no_place():
    values = np.array([1.0, -2.5, -0.1, 2.5 + 1e-9, 99.0, -99.0])
    assert _equal_outputs(OUTPUTS, values).tolist() == [-1] * 6
    assert _equal_outputs((3.0,), np.array([3.0, 2.0])).tolist() == [0, -1]
