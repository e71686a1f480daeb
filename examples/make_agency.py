"""Write the tables of the agency's year into this folder: invented people, the same each time.

``register-2025.csv`` and ``register-2026.csv`` hold the true answers, of nearly the same people:
some left, some came, some answers changed. ``contractor-2025.csv`` and ``contractor-2026.csv`` are
what a contractor made of them for publication: randomized response at ε = 0.5 on ``income``,
``illness`` and ``benefits``. In 2025 the program took one random number for a whole row, so that
two columns share their noise. Needs nothing but Python: ``python make_agency.py [PEOPLE]``.
"""

import csv
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

HEADER = ("person", "age", "region", "household", "income", "illness", "benefits")
PRIVATE = {"income": ("low", "middle", "high"), "illness": ("no", "yes"), "benefits": ("no", "yes")}
REGIONS = ("north", "east", "south", "west")
EPSILON = 0.5
Person = dict[str, object]


def answers(age: int, household: int, rng: random.Random) -> Person:
    """Return a person's private answers: they depend on age and household, and on each other."""
    wealth = 0.03 * (50 - abs(age - 50)) - 0.1 * household + rng.gauss(0, 0.6)
    income = "low" if wealth < 0.3 else "middle" if wealth < 1.0 else "high"
    ill = rng.random() < 1 / (1 + math.exp(-(0.05 * (age - 60) + 0.8 * (income == "low"))))
    helped = rng.random() < (0.6 if income == "low" else 0.25 if ill else 0.08)
    return {"income": income, "illness": _word(ill), "benefits": _word(helped)}


def _word(told: bool) -> str:
    return "yes" if told else "no"


def person(number: int, rng: random.Random) -> Person:
    """Return one person with a number that stays the same over the years."""
    age, household = rng.randint(18, 90), min(1 + int(rng.expovariate(0.8)), 7)
    public = {"person": f"P{number:05d}", "age": age, "region": rng.choice(REGIONS)}
    return {**public, "household": household, **answers(age, household, rng)}


def next_year(people: Sequence[Person], rng: random.Random) -> list[Person]:
    """Return the register a year later: one in twenty left and came, one in ten answers anew."""
    stayed = [dict(one) for one in people if rng.random() > 0.05]
    for one in stayed:
        one["age"] = int(str(one["age"])) + 1
        if rng.random() < 0.1:
            one.update(answers(int(str(one["age"])), int(str(one["household"])), rng))
    came = range(len(people), 2 * len(people) - len(stayed))
    return [*stayed, *(person(number, rng) for number in came)]


def released(one: Person, rng: random.Random, *, careless: bool) -> Person:
    """Return a person with randomized answers; ``careless``: with one number for the whole row."""
    noisy, shared = dict(one), rng.random()
    for column, classes in PRIVATE.items():
        chance = shared if careless else rng.random()
        keep = math.exp(EPSILON) / (math.exp(EPSILON) + len(classes) - 1)
        others = [name for name in classes if name != one[column]]
        noisy[column] = one[column] if chance < keep else rng.choice(others)
    return noisy


def write(name: str, people: Sequence[Person]) -> None:
    """Write a table."""
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(people)


def main(count: int) -> None:
    """Write the four tables."""
    rng = random.Random(20260103)
    first = [person(number, rng) for number in range(count)]
    second = next_year(first, rng)
    write("register-2025.csv", first)
    write("register-2026.csv", second)
    write("contractor-2025.csv", [released(one, rng, careless=True) for one in first])
    write("contractor-2026.csv", [released(one, rng, careless=False) for one in second])
    sys.stdout.write("Wrote the registers and the contractor's files of 2025 and 2026.\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
