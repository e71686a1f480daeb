"""How each surface calls an option or a command: the terminal, Python, and the page of ``open``."""

# A message or a next step is data: a sentence that names what it is about as the command line does,
# ``(--truth)``, ``--minutes 5``, ``ldpaudit sweep``. Stored results hold it in this form. Who shows
# it, spells it: an option, a keyword, or the title of a field. The one table of words is here.

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple

Surface = Literal["terminal", "python", "page"]


class Words(NamedTuple):
    """What an option is called in Python, and the title of its field on the page."""

    # A title in small letters is no field: what the page says in its place. None at all: the page
    # does not have it, nor anything like it.

    keyword: str
    title: str = ""


# Options by their names on the command line. One that is not here is its own keyword and has no
# field on the page.
OPTIONS: Final[Mapping[str, Words]] = {
    "answers": Words("answers", "Answers in several releases"),
    "attack": Words("attacks"),
    "before": Words("before", "Columns from before the noise"),
    "canaries": Words("canaries", "Canaries"),
    "channel": Words("channel", "Channel of the claim"),
    "classes": Words("classes", "Classes"),
    "decimal": Words("decimal", "Decimal mark"),
    "debug": Words("debug", "details in a terminal"),
    "delta": Words("delta", "δ that was promised"),
    "device": Words("device", "Where models run"),
    "drop": Words("drop", "Columns to leave out"),
    "encoding": Words("encoding", "Text encoding"),
    "epsilon": Words("epsilon", "ε that was promised"),
    "exact": Words("exact", "Compare every row with every other"),
    "features": Words("features", "Columns that are features"),
    "for": Words("wanted", "What the release is for"),
    "force": Words("force", "Compare in spite of differences"),
    "gaussian-delta": Words("gaussian_delta", "δ of Gaussian noise"),
    "generator-data": Words("generator_data", "Rows to train a generator on"),
    "generator": Words("generator", "a generator"),
    "group": Words("group", "Column of people or groups"),
    "header": Words("header", "The first line holds names"),
    "held-out": Words("held_out", "Held-out rows"),
    "id": Words("id_column", "Column of people’s ids"),
    "joint": Words("joint", "Mechanism of all columns together"),
    "keep": Words("keep", "Columns to keep"),
    "label": Words("label", "Private columns"),
    "labels": Words("labels", "Range of the numbers"),
    "lambda": Words("noise", "λ that was promised"),
    "made-on": Words("made_on", "Day of the release"),
    "mechanism": Words("mechanism", "How the labels were randomized"),
    "memory": Words("memory", "memory"),
    "metric": Words("metric", "Space of the neighbours"),
    "minutes": Words("minutes", "Minutes to spend at most"),
    "missing-values": Words("missing_values", "Marks of missing values"),
    "missing": Words("missing", "Rows without a label"),
    "model": Words("model", "Model that learns"),
    "neighbors": Words("neighbors", "Number of neighbours"),
    "only": Words("only", "Audits to run"),
    "original": Words("original", "Original features"),
    "policy": Words("policy", "Policy"),
    "predictions": Words("predictions", "Predictions of a model"),
    "prior": Words("prior", "Public prior"),
    "profile": Words("profile", "Save the public page"),
    "processes": Words("processes", "fewer processes"),
    "projection": Words("projection", "Columns of the projection"),
    "public": Words("public", "Public rows with labels"),
    "public-posterior": Words("public_posterior", "Probabilities of the public model"),
    "queries": Words("queries", "Rows that look for neighbours"),
    "secret": Words("secret", "the file of true labels"),
    "seed": Words("seed", "Seed"),
    "seeds-tried": Words("seeds_tried", "Number of seeds to try"),
    "round": Words("round", "rounding"),
    "separator": Words("separator", "Mark between fields"),
    "sheet": Words("sheet", "Sheet of the workbook"),
    "skip": Words("skip", "Audits to leave out"),
    "slice": Words("slices", "Columns to score groups by"),
    "smoothness": Words("smoothness", "Smoothness C"),
    "smoothness-power": Words("smoothness_power", "Smoothness β"),
    "synthetic": Words("synthetic", "Synthetic rows"),
    "test": Words("test", "Test rows"),
    "text": Words("text", "Columns to read as text"),
    "threads": Words("threads", "Processors to use"),
    "timeout": Words("timeout", "Seconds to spend at most"),
    "truth": Words("truth", "True labels"),
    "truth-column": Words("truth_column", "Column of the true labels"),
}
# Commands: the function, and the page that does it; neither: only a terminal has it.
COMMANDS: Final[Mapping[str, Words]] = {
    "advise": Words("ldpaudit.advise", "Choose the noise"),
    "compare": Words("ldpaudit.compare", "Compare releases"),
    "declare": Words(""),
    "demo": Words(""),
    "learn": Words(""),
    "mechanism": Words(""),
    "open": Words(""),
    "policy": Words(""),
    "privatize": Words("ldpaudit.privatize", "Choose the noise"),
    "report": Words("", "Open a stored result"),
    "run": Words("ldpaudit.audit", "Audit a release"),
    "selftest": Words(""),
    "sweep": Words("ldpaudit.sweep", "Choose the noise"),
    "verify": Words(""),
}
IN_A_TERMINAL: Final = "in a terminal"

# A value: a placeholder, a number, a claim, or one of a few words that options choose from.
_VALUE: Final = (
    r"(?:[A-Z]+(?:[:,=][\w\[\]:=,.]*[\w\]])?(?:,…)?(?![a-z])|\d[\w.]*\d|\d\w*|"
    r"(?:all|class|drop|fail|fresh|nearest|pass|public|regression|remembered|"
    r"randomized-response|rr|unbiased)(?![\w-]))"
)
_AUDIT: Final = r"(?<=--only |--skip )(?!and\b|or\b)(?:[a-z]+(?:-[a-z]+)*|\{\w+\})"
_ONE: Final = rf"--[a-z]+(?:-[a-z]+)*(?:[= ](?:{_VALUE}|{_AUDIT}))?"
_OPTION: Final = re.compile(
    rf"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?:[= ]({_VALUE}|{_AUDIT}))?(?![\w-])"
)
_PARENTHESIS: Final = re.compile(rf" ?\(({_ONE}(?:(?:, or |, and |, | or | and | ){_ONE})*)\)")
_LINE: Final = re.compile(
    rf"(?:\bldpaudit ({'|'.join(COMMANDS)})|(?<![\w.“/-])(privatize)(?![\w(]))"
    rf"((?: (?:{_ONE}|-o [\w.]+|[A-Z]{{3,}}(?!\w)|\{{\w+\}}|check|describe|design|compose|channel|"
    r"init|audit)(?=[\s.,;:)]|$))*(?:\{\w+\})?)"
)
_PARAMETER: Final = re.compile(r"(?:The )?(?:'|&#39;)([a-z_]+)(?:'|&#39;)(?: parameter)?(?= must)")
_PLACEHOLDER: Final = re.compile(r"[A-Z][A-Z]*(?:[:,=].*)?(?:,…)?")
_speaking: ContextVar[Surface] = ContextVar("surface", default="python")


@contextmanager
def speaking(surface: Surface) -> Iterator[None]:
    """Let what is shown within the block be spelt for a surface; the page's keeps its words."""
    kept = _speaking.get()
    token = _speaking.set("page" if kept == "page" else surface)
    try:
        yield
    finally:
        _speaking.reset(token)


def spoken() -> Surface:
    """Return the surface that is spoken now: Python's, where no other was named."""
    return _speaking.get()


def options_in(text: str) -> tuple[str, ...]:
    """Return the options that a sentence names, in their order, without dashes."""
    return tuple(dict.fromkeys(found[1] for found in _OPTION.finditer(text)))


def spelt(
    text: str, surface: Surface | None = None, keywords: Mapping[str, str] | None = None
) -> str:
    """Return a sentence with options and commands as a surface calls them.

    ``keywords`` are those of the function that was called, by option, where they are its own.
    """
    surface = surface or spoken()
    if surface == "terminal":
        return text
    if surface == "python":
        return _in_python(text, keywords or {})
    return _on_page(text, lambda title, _: f"“{title}”")


def on_page(text: str, field: Callable[[str, str], str]) -> str:
    """Return a sentence for the page; ``field`` writes a title, of the option that it names."""
    return _on_page(text, field)


def _in_python(text: str, keywords: Mapping[str, str]) -> str:
    def line(found: "re.Match[str]") -> str:
        function = COMMANDS[found[1] or found[2]].keyword
        if not function:
            return keep(found[0])
        given = [option(one) for one in _OPTION.finditer(found[3])]
        places = re.findall(r"(?<= )[A-Z]{3,}(?!\w)", _OPTION.sub("", found[3]))
        return f"{function}({', '.join([*places, *given])})"

    def option(found: "re.Match[str]") -> str:
        known, value = OPTIONS.get(found[1]), found[2] or ""
        own = keywords.get(found[1]) or (known.keyword if known else found[1].replace("-", "_"))
        plain = not value or value[0].isdigit() or _PLACEHOLDER.fullmatch(value)
        return f"{own}={value if plain else repr(value)}"

    def parenthesis(found: "re.Match[str]") -> str:
        return found[0].replace(found[1], re.sub(r"(?<=\w) (?=--)", ", ", found[1]))

    keep, finished = _kept()
    return finished(_OPTION.sub(option, _PARENTHESIS.sub(parenthesis, _LINE.sub(line, text))))


def _on_page(text: str, field: Callable[[str, str], str]) -> str:
    def line(found: "re.Match[str]") -> str:
        title = COMMANDS[found[1] or found[2]].title
        return f"“{title}”" if title else keep(found[0])

    def parenthesis(found: "re.Match[str]") -> str:
        named = [one for one in _OPTION.finditer(found[1]) if _is_field(_title(one[1]))]
        if not named:
            return ""
        fields = " or ".join(dict.fromkeys(map(option, named)))
        if " or " not in found[1]:
            fields = fields.replace(" or ", ", ")
        return f" ({'link' if named[0][1] == 'profile' else 'field'} {fields})"

    def option(found: "re.Match[str]") -> str:
        title, value = _title(found[1]), found[2] or ""
        if not title:
            return f"the option “{found[1]}” of the command line"
        if not _is_field(title):
            return title
        shown = field(title, found[1])
        whole = not value or found[1] == "profile" or _PLACEHOLDER.fullmatch(value)
        return shown if whole else f"{shown}: {value}"

    def parameter(found: "re.Match[str]") -> str:
        named = next((word for word, one in OPTIONS.items() if one.keyword == found[1]), "")
        return field(_title(named), named) if _is_field(_title(named)) else found[0]

    keep, finished = _kept()
    text = _PARAMETER.sub(parameter, _PARENTHESIS.sub(parenthesis, _LINE.sub(line, text)))
    return finished(_OPTION.sub(option, text))


def _kept() -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Return what takes a line of a terminal out of a sentence, and what puts it back."""
    lines: list[str] = []

    def keep(line: str) -> str:
        lines.append(line)
        return f"{IN_A_TERMINAL}: \0{len(lines) - 1}\0"

    return keep, lambda text: re.sub("\0(\\d+)\0", lambda found: lines[int(found[1])], text)


def _title(option: str) -> str:
    known = OPTIONS.get(option)
    return known.title if known else ""


def _is_field(title: str) -> bool:
    return title[:1] in ("ε", "δ", "λ") or title[:1].isupper()
