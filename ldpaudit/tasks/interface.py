"""What does tasks, and what comes back of one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ldpaudit.errors import LdpAuditError

T = TypeVar("T")


class Tasks(Protocol):
    """Does independent tasks; whatever does them, the results are the same.

    Each call is ``function(item, shared)``. Where tasks draw, an item names its generator
    (:func:`ldpaudit.randomness.child_generator`): nothing depends on who does what, or when.
    """

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time; on a cluster, for now."""

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items.

        Parameters
        ----------
        function : callable
            Of a module, by its name: ``function(item, shared)``. Its name is shown on a cluster's
            dashboard. It must not change what is shared: large arrays in it are read only.
        items : iterable
            Picklable and small: numbers of blocks, names.
        shared : object, optional
            Picklable; may hold large arrays, also memory-mapped ones, which other processes read
            from their files.

        Raises
        ------
        ldpaudit.errors.LdpAuditError
            What the first task in order that failed raised.
        """


@dataclass(frozen=True)
class Answer:
    """The answer to a task.

    Attributes
    ----------
    content : object
        What the task returned.
    reason : str
        Why it failed, in one line without data; empty where it did not.
    late : bool
        Whether it took longer than the time limit.
    status : int or None
        The exit status of a process that ended before it answered.
    error : LdpAuditError or None
        What the task raised, where its message is for users.
    """

    content: Any = None
    reason: str = ""
    late: bool = False
    status: int | None = None
    error: LdpAuditError | None = None

    def value(self) -> Any:
        """Return the content.

        Raises
        ------
        LdpAuditError
            If the task failed.
        """
        if self.reason:
            raise self.error or LdpAuditError(self.reason)
        return self.content


def attempt(work: Callable[..., Any], *task: Any) -> Answer:
    """Do a task; any failure becomes one line without data."""
    try:
        return Answer(work(*task))
    except LdpAuditError as error:
        return Answer(reason=" ".join(str(error).split()), error=error)
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:
        # The text of a foreign exception may hold data, so only its type is shown.
        reason = f"Internal fault ({type(error).__name__})."
    return Answer(reason=reason)


class Pool(Tasks, Protocol):
    """Processes that do tasks; one that fails, or whose process ends, costs no other."""

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items; the first error in order is raised."""
        yield from in_order(self.answers(function, [*items], shared))

    def answers(
        self, function: Callable[[Any, Any], Any], items: Sequence[Any], shared: Any = None
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the number and the answer of each item as it is done, in any order."""


def in_order(answers: Iterable[tuple[int, Answer]]) -> Iterator[Any]:
    """Yield the contents of answers by their numbers 0, 1 …; the first failure in order raises."""
    waiting: dict[int, Answer] = {}
    position = 0
    for number, answer in answers:
        waiting[number] = answer
        while position in waiting:
            yield waiting.pop(position).value()
            position += 1
