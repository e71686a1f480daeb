"""Draws each column by itself from the rows of a label: no two columns go together."""

import numpy as np
import pyarrow as pa

from ldpaudit.doors import Generator


class ShuffledColumns(Generator):
    name = "shuffled-columns"

    def _learn(self, table, codes, classes, rng, progress, device):
        self.table = table.take(pa.array(np.argsort(codes, kind="stable")))
        self.counts = np.bincount(codes, minlength=classes)

    def sample(self, labels, rng):
        first = np.cumsum(self.counts) - self.counts
        columns = []
        for column in self.table.columns:
            rows = first[labels] + rng.integers(self.counts[labels])
            columns.append(column.take(pa.array(rows)))
        return pa.table(columns, schema=self.table.schema)

    def state(self):
        columns = [column.combine_chunks() for column in self.table.columns]
        return {"columns": columns, "names": self.table.column_names, "counts": self.counts}

    @classmethod
    def from_state(cls, state):
        made = cls("private")
        made.table = pa.table(state["columns"], names=state["names"])
        made.counts = state["counts"]
        return made
