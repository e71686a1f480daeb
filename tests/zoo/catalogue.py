"""Every fault and every honest release of the zoo, by its id."""

from zoo.changed import CHANGED
from zoo.channels import CHANNELS
from zoo.honest import HONEST
from zoo.left_behind import LEFT_BEHIND
from zoo.numbers import NUMBERS
from zoo.shared import SHARED_NOISE
from zoo.specimen import Fault

FAULTS: dict[str, Fault] = {
    fault.id: fault
    for fault in (*CHANNELS, *SHARED_NOISE, *LEFT_BEHIND, *NUMBERS, *HONEST, *CHANGED)
}
