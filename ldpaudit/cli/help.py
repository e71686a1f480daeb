"""A command's help: its options in six groups; the last two on a screen of their own if long."""

from collections.abc import Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand

from ldpaudit.errors import InputError
from ldpaudit.options.labels import KEYS

MORE: Final = "--help-more"
# Of a screen, at most.
_LINES: Final = 60
_ARGUMENTS: Final = "Arguments"
_OWN: Final = "Options"
# The options of each group, in the order in which ``--help`` lists them; others are the first.
_GROUPS: Final = {
    "Claim": "mechanism epsilon lambda delta channel classes labels prior joint by set",
    "Truth": (
        "truth predictions truth-column before label id group data original synthetic public test "
        "test-share"
    ),
    "Policy": "policy inconclusive not-yet exit-zero timeout for minutes max-undetected-excess",
    "Output": (
        "output out secret overwrite json html sarif junit markdown registry profile quiet "
        "remember synthetic-out posterior-out help"
    ),
    "Reading": (
        "features drop keep separator decimal encoding sheet header text missing-values projection"
    ),
    "Expert": (
        "only skip attack slice answers canaries gaussian-delta public-posterior held-out scores "
        "queries neighbors metric exact smoothness smoothness-power seed seeds-tried made-on "
        "threads force details processes device memory cluster cluster-without-tls confidence "
        "experimental floor private-prior unperturbed stages radius sigma feature-epsilon project "
        "synthetic-rows format debug"
    ),
}
_PLACES: Final = {
    f"--{name}": (group, place)
    for group, names in _GROUPS.items()
    for place, name in enumerate(names.split())
}
_SECOND: Final = ("Reading", "Expert")


class Command(TyperCommand):
    """A command whose help shows its options by what they are about."""

    def invoke(self, ctx: Any) -> None:
        """Carry it out; its status is that of ``typer.Exit``, never what a function returns."""
        super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer ``--help-more``, and parse the rest."""
        if MORE in args[: args.index("--") if "--" in args else None]:
            formatter = ctx.make_formatter()
            self.format_usage(ctx, formatter)
            _write(formatter, self._options(ctx), _SECOND)
            typer.echo(formatter.getvalue().rstrip())
            ctx.exit()
        if self.name == "declare":
            _check_order(args)
        _check_given_once(self.make_parser(ctx).parse_args(args=[*args])[2])
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups, those on reading and for experts only where all fit on one screen."""
        groups = self._options(ctx)
        entire = ctx.make_formatter()
        _write(entire, groups, groups)
        if entire.getvalue().count("\n") <= _LINES - formatter.getvalue().count("\n"):
            _write(formatter, groups, groups)
            return
        _write(formatter, groups, [name for name in groups if name not in _SECOND])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"Reading files, and options for experts: {MORE}.")

    def _options(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return what is said of each option, by group."""
        found: dict[str, list[tuple[int, tuple[str, str]]]] = {
            name: [] for name in (_ARGUMENTS, _OWN, *_GROUPS)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                group, place = _place(parameter)
                name = record[0].split(" ")[0] if group == _ARGUMENTS else record[0]
                found[group].append((place, (name, record[1])))
        ordered = {name: sorted(of, key=lambda one: one[0]) for name, of in found.items()}
        return {name: [record for _, record in of] for name, of in ordered.items() if of}


def _check_given_once(given: Sequence[Any]) -> None:
    """Refuse an option that takes one value and was given two: which of them holds?"""
    single = [one for one in given if one.param_type_name == "option" and not one.multiple]
    for option in single:
        if single.count(option) > 1 and not option.is_flag:
            raise InputError(f"{option.opts[0]} was given twice, and takes one value.")


def _check_order(words: Sequence[str]) -> None:
    """Refuse what stands between two ``--label``: is it about the first one, or about both?"""
    options = [word.partition("=")[0] for word in words]
    labels = [place for place, option in enumerate(options) if option == "--label"]
    about = {f"--{key}" for key in ("mechanism", *KEYS)}
    for option in options[labels[0] : labels[-1]] if labels else ():
        if option in about:
            raise InputError(
                f"{option} stands between two --label; write what is claimed of one column as "
                "--label NAME:rr:epsilon=1, and what holds for the others after all of them."
            )


def _place(parameter: Any) -> tuple[str, int]:
    if parameter.param_type_name == "argument":
        return _ARGUMENTS, 0
    return next((_PLACES[name] for name in parameter.opts if name in _PLACES), (_OWN, 0))


def _write(formatter: Any, groups: dict[str, list[tuple[str, str]]], names: Any) -> None:
    for name in names:
        if name in groups:
            with formatter.section(name):
                formatter.write_dl(groups[name])
