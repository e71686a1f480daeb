"""Bins of least absolute loss in O(k log k): a path over outputs instead of over bins.

For the absolute loss each output is one of the labels and each label belongs to the nearest
output. So the cost of a set of outputs is a sum over neighbouring outputs a < b of
Σ p_y min(y − a, b − y) over the labels between them, plus a cost of each single output. In this
form the costs are Monge (C(a, c) + C(b, d) ≤ C(a, d) + C(b, c) for a ≤ b ≤ c ≤ d: labels between
b and c are nearer to these than to a and d), unlike the costs of bins. Once a later predecessor
is better it stays better, so a queue of predecessors is enough (Hirschberg and Larmore 1987).
"""

from bisect import bisect_left
from collections import deque
from itertools import accumulate, pairwise

from ldpaudit.release import FloatArray


class MedianPaths:
    """The paths over outputs of k labels at a price per output."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        self._labels: list[float] = labels.tolist()
        self._growth = growth
        self._mass: list[float] = [0.0, *accumulate(prior.tolist())]
        self._first: list[float] = [0.0, *accumulate((prior * labels).tolist())]

    def cheapest(self, price: float) -> list[int]:
        """Return the codes of the outputs that minimise the cost less the price of each output."""
        k = len(self._labels)
        value, before = [0.0] * (k + 1), [-1] * (k + 1)
        # Node −1 is the start, node k the end. Queue: a predecessor, and the first node it is for.
        queue: deque[tuple[int, int]] = deque([(-1, 0)])
        for node in range(k + 1):
            while len(queue) > 1 and queue[1][1] <= node:
                queue.popleft()
            before[node] = queue[0][0]
            value[node] = self._reach(queue[0][0], node, value)
            if node < k:
                value[node] += self._alone(node) - price
                self._enter(queue, node, value)
        return self._path(before)

    def _enter(self, queue: deque[tuple[int, int]], node: int, value: list[float]) -> None:
        k = len(self._labels)
        while queue:
            rival, since = queue[-1]
            since = max(since, node + 1)
            if self._better(node, rival, since, value):
                queue.pop()
                continue
            low, high = since, k + 1
            while high - low > 1:
                middle = (low + high) // 2
                if self._better(node, rival, middle, value):
                    high = middle
                else:
                    low = middle
            if high <= k:
                queue.append((node, high))
            return
        queue.append((node, node + 1))

    def _better(self, node: int, rival: int, target: int, value: list[float]) -> bool:
        return self._reach(node, target, value) < self._reach(rival, target, value)

    def _reach(self, node: int, target: int, value: list[float]) -> float:
        """Return the least value of a path to ``node`` plus the labels' cost up to ``target``."""
        labels, mass, first, k = self._labels, self._mass, self._first, len(self._labels)
        if target == k:
            if node < 0:
                return float("inf")
            split = k
        elif node < 0:
            split = 0
        else:
            split = bisect_left(labels, 0.5 * (labels[node] + labels[target]), node, target)
        cost = 0.0
        if node >= 0:
            cost = first[split] - first[node] - labels[node] * (mass[split] - mass[node])
        if target < k:
            cost += labels[target] * (mass[target] - mass[split]) - (first[target] - first[split])
        return (value[node] if node >= 0 else 0.0) + self._growth * cost

    def _alone(self, node: int) -> float:
        """Return Σ p_y |label[node] − y| over all labels."""
        mass, first, label = self._mass, self._first, self._labels[node]
        below = label * mass[node] - first[node]
        return below + first[-1] - first[node] - label * (mass[-1] - mass[node])

    def _path(self, before: list[int]) -> list[int]:
        node, outputs = before[-1], []
        while node >= 0:
            outputs.append(node)
            node = before[node]
        return outputs[::-1]

    def starts(self, outputs: list[int]) -> list[int]:
        """Return the first label of each output's bin: the labels nearest to it."""
        labels = self._labels
        cuts = [bisect_left(labels, 0.5 * (labels[a] + labels[b])) for a, b in pairwise(outputs)]
        return [0, *cuts]
