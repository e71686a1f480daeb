import pytest

from ldpaudit.commands.sweep.request import SweepRequest, parse_grid
from ldpaudit.errors import InputError


def test_values_and_ranges_run_from_the_least_noise_to_the_most() -> None:
    assert parse_grid("lambda", "0.3,0.1,0.1").values == (0.1, 0.3)
    assert parse_grid("lambda", "0.05:0.4:8").values == (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    assert parse_grid("epsilon", "1:3:3").values == (3.0, 2.0, 1.0)
    assert parse_grid("epsilon", "2:2:1").values == (2.0,)


@pytest.mark.parametrize(
    ("parameter", "text", "word"),
    [
        ("lambda", "", "1 to 1000"),
        ("lambda", " , ", "1 to 1000"),
        ("lambda", "0.1:0.4:0", "1 to 1000"),
        ("lambda", "0.1:0.4", "LO:HI:N"),
        ("lambda", "0.4:0.1:3", "LO:HI:N"),
        ("lambda", "a,b", "LO:HI:N"),
        ("lambda", "0.1:0.4:1001", "LO:HI:N"),
        ("lambda", "0:1:3", "λ = 0"),
        ("lambda", "1.5", "at most 1"),
        ("lambda", "nan", "at most 1"),
        ("epsilon", "0,1", "above 0"),
        ("epsilon", "inf", "above 0"),
        ("epsilon", "1:inf:3", "LO:HI:N"),
    ],
)
def test_bad_grids(parameter: str, text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        parse_grid(parameter, text)  # type: ignore[arg-type]


def test_a_point_has_the_same_name_in_every_sweep() -> None:
    names, grid = ("double-rr", "randomized-response"), parse_grid("lambda", "0.05:0.4:8")
    among = SweepRequest(data="d", mechanisms=names, grid=grid, repeats=2).points()
    alone = SweepRequest(data="d", mechanisms=names[:1], grid=parse_grid("lambda", "0.1")).points()
    assert alone[0].key == "double-rr-lambda-0.1-1"
    assert alone[0] in among
    assert len({point.key for point in among}) == len(among) == 32
    # An unfinished sweep has looked at the whole grid before it repeats anything.
    assert [point.repeat for point in among] == [1] * 16 + [2] * 16
