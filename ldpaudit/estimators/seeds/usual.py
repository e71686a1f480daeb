"""Seeds that people write: small numbers, dates, jokes; on request the seconds of a day."""

import datetime
from typing import Final

import numpy as np

from ldpaudit.arrays import IndexArray, SeedArray

COUNTED: Final = 1 << 15
"""By default every seed below this is tried."""
ALL: Final = 1 << 32
_DAY: Final = 86_400
_FIRST, _LAST = datetime.date(1990, 1, 1), datetime.date(2030, 12, 31)
_FAVOURITES: Final = (
    *(10**power for power in range(10)),
    *(int("123456789"[:length]) for length in range(1, 10)),
    *(int("987654321"[-length:]) for length in range(1, 10)),
    *(int(digit * length) for digit in "123456789" for length in range(1, 10)),
    *(31337, 54321, 99999, 999999, 123123, 424242, 8675309, 20000, 50000, 271828, 2718281),
    *(27182818, 314159, 3141592, 31415926, 314159265, 161803, 1618033, 1234567890),
    *(0xBAD5EED, 0xC0FFEE, 0xCAFE, 0xBEEF, 0xDEADBEEF, 0xCAFEBABE, 0xFEEDFACE, 0x12345678),
    *(2**power for power in range(32)),
    *(2**power - 1 for power in range(1, 33)),
)


def other_seeds(counted: int, made_on: datetime.date | None = None) -> SeedArray:
    """Return the seeds from ``counted`` on that people write.

    Parameters
    ----------
    counted : int
        Seeds below are tried anyway.
    made_on : datetime.date, optional
        When the release was made: the seconds since 1970 of that day are tried, in every time zone.

    Returns
    -------
    uint32 array, increasing
    """
    parts = [np.array(_FAVOURITES, dtype=np.int64), _dates()]
    if made_on is not None:
        midnight = (made_on - datetime.date(1970, 1, 1)).days * _DAY
        parts.append(np.arange(midnight - _DAY // 2, midnight + _DAY + 7 * _DAY // 12))
    seeds = np.unique(np.concatenate(parts))
    return seeds[(seeds >= counted) & (seeds < ALL)].astype(np.uint32)


def _dates() -> IndexArray:
    """Return dates as numbers: 20260131."""
    days = [_FIRST + datetime.timedelta(days) for days in range((_LAST - _FIRST).days + 1)]
    return np.array([10_000 * day.year + 100 * day.month + day.day for day in days])
