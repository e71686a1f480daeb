"""Parts that print to standard output, when they are imported and when they run."""

import os
import pipes
import sys
from dataclasses import replace

import first_column
import first_label
import strange_responses

from ldpaudit.doors import Family, Finding, Format, Reader


def talk():
    sys.stdout.write("TALK\n")
    os.write(1, b"TALK\n")


talk()


def talking(function):
    def talks(*arguments, **more):
        talk()
        return function(*arguments, **more)

    return talks


class Attack(first_column.FirstColumnAttack):
    name = "talking"
    fit = talking(first_column.FirstColumnAttack.fit)
    posterior = talking(first_column.FirstColumnAttack.posterior)


class Audit(first_label.FirstLabelAudit):
    id = "talking"
    unavailable = talking(first_label.FirstLabelAudit.unavailable)

    def run(self, context):
        talk()
        return Finding()


READER = Reader((".talk",), talking(pipes.read))
FORMAT = Format(talking(lambda *_: "{}"))
MECHANISM = Family(
    traits=replace(strange_responses.CYCLIC.traits, name="talking"),
    parameters=strange_responses.CYCLIC.parameters,
    channel=talking(strange_responses.cyclic_channel),
    describe=talking(strange_responses.CYCLIC.describe),
)
