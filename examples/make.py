"""Write the tables of the examples into this folder: invented patients, the same ones each time.

``patients.csv`` has features and the true labels (``diagnosis``); ``test.csv`` has more patients,
who are in no release; ``survey.csv`` is what another program released of the first ones: randomized
response at ε = 1, with no declaration. Needs nothing but Python: ``python make.py [ROWS]``.
"""

import csv
import math
import random
import sys
from pathlib import Path

HEADER = ("age", "bmi", "smoker", "region", "visits", "diagnosis")
CLASSES = ("none", "diabetes")
EPSILON = 1.0


def patient(rng: random.Random) -> tuple[object, ...]:
    """Return one patient: features that say something about the diagnosis, but do not decide it."""
    age, bmi = rng.randint(18, 90), round(rng.gauss(26, 4), 1)
    smoker, region = rng.random() < 0.25, rng.choice(["north", "east", "south", "west"])
    risk = 0.04 * (age - 55) + 0.1 * (bmi - 26) + 0.8 * smoker - 0.7
    ill = rng.random() < 1 / (1 + math.exp(-risk))
    visits = min(int(rng.expovariate(1 / (3.0 if ill else 2.0))), 12)
    return age, bmi, "yes" if smoker else "no", region, visits, CLASSES[ill]


def randomized(label: object, rng: random.Random) -> object:
    """Return the label, with probability 1/(1 + e^ε) the other one."""
    other = CLASSES[label == CLASSES[0]]
    return other if rng.random() < 1 / (1 + math.exp(EPSILON)) else label


def write(name: str, rows: list[tuple[object, ...]]) -> None:
    """Write a table."""
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])


def main(count: int) -> None:
    """Write the three tables."""
    rng = random.Random(20260101)
    patients = [patient(rng) for _ in range(count)]
    write("patients.csv", patients)
    write("test.csv", [patient(rng) for _ in range(count // 4)])
    write("survey.csv", [(*row[:-1], randomized(row[-1], rng)) for row in patients])
    sys.stdout.write("Wrote patients.csv, test.csv and survey.csv.\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
