"""Where a release is written, and which columns it needs: checked before anything is read."""

import os
from collections.abc import Collection
from pathlib import Path

from ldpaudit.commands.outputs import check_apart, check_place, lies_in
from ldpaudit.commands.privatize.request import DataOptions, PrivatizeRequest
from ldpaudit.commands.privatize.stated import StatedRelease
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.writing.tables import check_format, written_places
from ldpaudit.errors import InputError, OutputError


def check_places(request: PrivatizeRequest, stated: StatedRelease) -> None:
    """Check the files that will be written against each other and against those that are read."""
    others = [path for path in (request.secret, request.synthetic_out) if path is not None]
    targets = [*written_places(request.output), *others]
    data = locate(request.data) if isinstance(request.data, str | os.PathLike) else None
    remembered = [] if request.remember is None else [request.remember]
    tables = (request.public, request.synthetic, request.generator_data)
    plan = request.plan if isinstance(request.plan, str | os.PathLike) else None
    check_apart(
        [*targets, *remembered], (*(data.paths if data else ()), plan, *stated.files, *tables)
    )
    folder = None if data is None or data.folder is None else Path(data.folder)
    for place in remembered:
        check_place(place)
    for target in targets:
        if folder is not None and lies_in(target, folder):
            raise OutputError(
                f"{quoted(target.name)} would lie in the folder that is read; write it elsewhere."
            )
        if target in (request.output, *others):
            check_format(target)
        _check_free(target, overwrite=request.overwrite)


def _check_free(target: Path, *, overwrite: bool) -> None:
    """Check that a file may be written there."""
    shown = quoted(target.name)
    check_place(target)
    if os.path.lexists(target) and not overwrite:
        raise OutputError(
            f"{shown} exists already and is left as it is; --overwrite replaces it, but a second "
            "draw of the same labels tells more than one."
        )


def check_columns(options: DataOptions, labels: Collection[str], source: BatchSource) -> None:
    """Refuse a label or a column to drop or to keep that the data lack (InputError)."""
    named = [(n, "to drop") for n in options.drop] + [(n, "to keep") for n in options.keep]
    for name, role in (*((label, "label") for label in labels), *named):
        if name not in source.schema.names:
            raise missing_column(name, role, source.schema.names)


def check_roles(stated: StatedRelease, source: BatchSource) -> None:
    """Refuse strata that are no public, released column, and labels dropped or kept (InputError).

    What one column is, another may not be: a private column is never a feature.
    """
    request, private = stated.columns[0], [one.label for one in stated.columns]
    check_columns(request, private, source)
    for name in private:
        if name in request.drop or name in request.keep:
            option = "--drop" if name in request.drop else "--keep"
            raise InputError(f"{option} must name other columns than the private ones.")
    person = request.id_column
    if person is not None and person not in source.schema.names:
        raise missing_column(person, "'id'", source.schema.names)
    if person in private:
        raise InputError("--id must name another column than the private ones.")
    for one in stated.columns:
        if one.by is None:
            continue
        if one.by not in source.schema.names:
            raise missing_column(one.by, "'by'", source.schema.names)
        if one.by in private or one.by in request.drop:
            raise InputError(
                f"The strata of {quoted(one.label)} must be a public column that is released: "
                f"{quoted(one.by)} is {'private' if one.by in private else 'dropped'}."
            )
