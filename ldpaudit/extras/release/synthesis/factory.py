"""Generators by their names, of this package and of others, and as files of arrays."""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.names import quoted
from ldpaudit.doors import Generator, InputError, LdpAuditError, MissingDependencyError
from ldpaudit.errors import did_you_mean
from ldpaudit.extras.release.synthesis.foreign import ForeignGenerator, load_maker
from ldpaudit.extras.release.synthesis.gan import ConditionalGan
from ldpaudit.extras.release.synthesis.mixture import ClassMixtures
from ldpaudit.generators import VERSION
from ldpaudit.plugins import added
from ldpaudit.work.documents import check_regular
from ldpaudit.work.files import WholeFiles

MAKERS: Final[Mapping[str, type[Generator]]] = {"gan": ConditionalGan, "mixture": ClassMixtures}
GENERATORS: Final = tuple(MAKERS)


def check_generator(name: str) -> None:
    """Refuse the name of a generator that there is not, or that cannot be used (InputError)."""
    if name in MAKERS:
        return
    points = added("generator", MAKERS)
    if name not in points:
        known = (*MAKERS, *points)
        rest = f"; choose from {', '.join(known)}."
        raise InputError(f"There is no generator {name!r}{did_you_mean(name, known, rest)}")
    load_maker(points[name])


def generator(name: str, **options: Any) -> Generator:
    """Return an unfitted generator, built-in or registered by another package."""
    if options.get("trained_on", "private") not in ("public", "private"):
        raise InputError("The 'trained_on' parameter must be 'public' or 'private'.")
    check_generator(name)
    if name not in MAKERS:
        return ForeignGenerator(added("generator", MAKERS)[name], **options)
    try:
        return MAKERS[name](**options)
    except TypeError:
        raise InputError(f"The generator {name!r} has no such option; see its class.") from None


_FORMAT = "ldpaudit-generator"
_STORABLE: Final = (
    "The state of a generator must consist of numbers, texts, lists, dicts and arrays."
)


def save_generator(
    generator: Generator,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a fitted generator to a file, whole or not at all: a NumPy archive (npz)."""
    # The file holds what was learnt of the training rows: treat it as confidential where they are.
    # It is readable by its owner only.
    target, arrays = Path(path), dict[str, Any]()
    content = {"format": _FORMAT, "version": VERSION, "name": generator.name}
    with generator.watched() if isinstance(generator, ForeignGenerator) else nullcontext():
        text = _as_text(content | {"state": generator.state()}, arrays)
    with WholeFiles(overwrite) as files:
        part = files.add(target, private=True)
        with part.writing():
            np.savez(part.stream, content=np.array(text), **arrays)
    return target


def load_generator(path: str | os.PathLike[str]) -> Generator:
    """Read a generator that :func:`save_generator` wrote; no code in the file is ever run."""
    target = Path(path)
    name = quoted(target.name)
    try:
        check_regular(target)
        with np.load(io.BytesIO(target.read_bytes()), allow_pickle=False) as archive:
            arrays = dict(archive)
        content = json.loads(
            str(arrays["content"]), object_hook=lambda found: _restored(found, arrays)
        )
        known = content["format"] == _FORMAT
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        known = False
    if not known:
        raise InputError(f"{name} must be a generator's file.")
    if content.get("version") != VERSION:
        raise InputError(f"{name} holds a generator of another version; fit it again.")
    try:
        if content["name"] in MAKERS:
            return MAKERS[content["name"]].from_state(content["state"])
        point = added("generator", MAKERS)[content["name"]]
        return ForeignGenerator.restored(point, content["state"])
    except MissingDependencyError:
        raise
    except Exception as error:
        if isinstance(error, LdpAuditError) and content["name"] not in MAKERS:
            raise
        # A file of the right format with a damaged content fails wherever the damage lies.
        raise InputError(f"{name} is damaged: no generator can be rebuilt from it.") from None


def _as_text(content: Mapping[str, Any], arrays: dict[str, Any]) -> str:
    try:
        return json.dumps(content, default=lambda value: _stored(value, arrays))
    except LdpAuditError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        # Keys that are no texts, or what holds itself.
        raise InputError(f"{_STORABLE} It holds something else.") from error


def _stored(value: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Put what JSON cannot hold into the archive's arrays; return where it is."""
    name, kind = f"array{len(arrays)}", "array"
    if isinstance(value, pa.Schema):
        kind, value = "schema", np.frombuffer(value.serialize(), dtype=np.uint8)
    elif isinstance(value, pa.Array):
        batch = pa.record_batch([value], ["values"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        kind, value = "values", np.frombuffer(sink.getvalue(), dtype=np.uint8)
    array = np.asarray(value)
    if array.dtype.hasobject or not isinstance(value, np.ndarray | np.generic):
        raise InputError(f"{_STORABLE} Got {type(value).__name__} instead.")
    arrays[name] = array
    return {kind: name, "packed": True}


def _restored(found: dict[str, Any], arrays: dict[str, Any]) -> Any:
    if "packed" not in found:
        return found
    (kind, name), *_ = found.items()
    if kind == "array":
        return arrays[name]
    buffer = pa.py_buffer(arrays[name].tobytes())
    if kind == "schema":
        return pa.ipc.read_schema(buffer)
    with pa.ipc.open_stream(buffer) as stream:
        return stream.read_all().column(0).combine_chunks()
