"""The search in cells through torch: on a GPU the same counts, but for ties within rounding."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from ldpaudit.arrays import Float32Array, IntArray
from ldpaudit.estimators.neighbors.cell_search import CellSearch
from ldpaudit.estimators.neighbors.nearest_centers import FAR, folds_for, most_visits
from ldpaudit.estimators.neighbors.points import Points

if TYPE_CHECKING:
    from torch import Tensor

_TILE_ENTRIES = 1 << 26


@dataclass(frozen=True, eq=False)
class DeviceSearch:
    """A search whose rows lie on a torch device.

    Attributes
    ----------
    search : CellSearch
    rows, samples, centers, origins : torch tensors
        Those of its index, float32.
    """

    search: CellSearch
    rows: "Tensor"
    samples: "Tensor"
    centers: "Tensor"
    origins: "Tensor"

    @classmethod
    def on(cls, device: str, search: CellSearch) -> Self:
        """Return the search with its rows on a device (``cpu``, ``cuda``)."""
        import torch

        def there(array: Float32Array) -> "Tensor":
            return torch.as_tensor(np.array(array), device=device)

        index = search.index
        origins = index.centers + index.shift
        return cls(
            search, there(index.rows), there(index.samples), there(index.centers), there(origins)
        )


@dataclass(frozen=True, eq=False)
class _Visits:
    """Visits ordered by cell: who visits, as which of its visits, and where each cell's begin."""

    queries: "Tensor"
    slots: "Tensor"
    ends: list[int]
    most: int


def count_on_device(batch: slice, asked: tuple[DeviceSearch, Points]) -> IntArray:
    """Return what :func:`ldpaudit.estimators.neighbors.cell_search.count_in_cells` does."""
    import torch

    on, device = asked[0], asked[0].rows.device
    index = on.search.index
    queries = _tensor(asked[1].take(batch), device)
    visits = _visits(queries - _tensor(index.shift, device), on)
    radii = _radii(queries, visits, on)
    counts = torch.zeros((index.label_counts.shape[1], len(queries)), device=device)
    for cell in np.flatnonzero(np.diff(visits.ends)).tolist():
        chosen, local, half_norms = _located(queries, visits, cell, on)
        rounding = (local.shape[1] + 3) * float(np.finfo(np.float32).eps)
        reach = float(index.reaches[cell])
        least = half_norms - radii[chosen] - rounding * (half_norms + reach)
        rows = on.rows[int(index.starts[cell]) : int(index.starts[cell + 1])]
        inside = (rows @ local.T >= least).float()
        counts[:, chosen] += _indicators(index.label_counts[cell], device) @ inside
    return np.ascontiguousarray(counts.T.to("cpu").numpy().astype(np.int32))


def _indicators(label_counts: IntArray, device: object) -> "Tensor":
    """Return which rows of a cell carry which label, float32 of shape (K, rows)."""
    codes = np.repeat(np.arange(len(label_counts)), label_counts)
    return _tensor(codes[None] == np.arange(len(label_counts))[:, None], device).float()


def _tensor(array: object, device: object) -> "Tensor":
    import torch

    return torch.as_tensor(array, device=device)  # type: ignore[arg-type]


def _visits(local: "Tensor", on: DeviceSearch) -> _Visits:
    """Return the same visits as on the processor, but for centers that are equally near."""
    import torch

    centers, count = on.centers, on.search.visits
    most, folds = most_visits(count, len(centers)), folds_for(count, len(centers))
    half_norms = 0.5 * (centers * centers).sum(dim=1)
    padding = -len(centers) % folds
    found = []
    size = max(1, _TILE_ENTRIES // (len(centers) + padding))
    for start in range(0, len(local), size):
        far = half_norms - local[start : start + size] @ centers.T
        far = torch.nn.functional.pad(far, (0, padding), value=float(FAR))
        least = far.view(len(far), folds, -1).amin(dim=1)
        reach = least.kthvalue(count, dim=1, keepdim=True).values
        hits = (far <= reach).nonzero()
        hits[:, 0] += start
        found.append(hits)
    queries, cells = torch.cat(found).T
    slots = torch.arange(len(queries), device=queries.device) - torch.searchsorted(
        queries.contiguous(), queries.contiguous()
    )
    kept = slots < most
    queries, cells, slots = queries[kept], cells[kept], slots[kept]
    cells, order = cells.sort(stable=True)
    ends = torch.searchsorted(cells, torch.arange(len(centers) + 1, device=cells.device))
    return _Visits(queries[order], slots[order], ends.tolist(), most)


def _located(
    queries: "Tensor", asked: _Visits, cell: int, on: DeviceSearch
) -> "tuple[Tensor, Tensor, Tensor]":
    """Return who visits a cell, q − o with a one, and ½‖q − o‖²."""
    import torch

    chosen = asked.queries[asked.ends[cell] : asked.ends[cell + 1]]
    offsets = queries[chosen] - on.origins[cell]
    ones = torch.ones((len(chosen), 1), device=offsets.device)
    return chosen, torch.cat([offsets, ones], dim=1), 0.5 * (offsets * offsets).sum(dim=1)


def _radii(queries: "Tensor", asked: _Visits, on: DeviceSearch) -> "Tensor":
    """Return half the squared radius of each query."""
    import torch

    index = on.search.index
    shape = (len(queries), asked.most, on.samples.shape[1])
    half_squares = torch.full(shape, float(FAR), device=queries.device)
    for cell in np.flatnonzero(np.diff(asked.ends)).tolist():
        chosen, local, half_norms = _located(queries, asked, cell, on)
        sampled = int(index.sampled[cell])
        slots = asked.slots[asked.ends[cell] : asked.ends[cell + 1]]
        nearness = local @ on.samples[cell, :sampled].T
        half_squares[chosen, slots, :sampled] = half_norms[:, None] - nearness
    return half_squares.flatten(1).kthvalue(on.search.rank, dim=1).values
