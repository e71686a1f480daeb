"""The published schemas: everything described, and every result that was recorded is valid."""

import json
from functools import cache

import pytest
from golden.invocations import COMPARISONS, MECHANISMS, RUNS, SWEEPS
from golden.recording import VOLATILE, load

from ldpaudit.cli.schemas import schema_of, storing
from ldpaudit.errors import InputError
from ldpaudit.result import SCHEMA_VERSION, AuditResult

STORED = tuple(storing())


@cache
def schema(command):
    return json.loads(schema_of(command))


def tables(whole):
    return {**whole.get("$defs", {}), whole["title"]: whole}


@pytest.mark.parametrize("command", STORED)
def test_every_field_is_described(command):
    whole = schema(command)
    assert whole["$id"].startswith(f"urn:ldpaudit:{command}:")
    for name, table in tables(whole).items():
        assert table["description"].endswith("."), name
        for field, content in table["properties"].items():
            assert content.get("description", "").strip(), (name, field)
            assert "``" not in content["description"]


def recorded(command):
    """Return the names of recordings of a command's results."""
    lines = {"run": RUNS, "compare": COMPARISONS, "sweep": SWEEPS}
    for one in MECHANISMS:
        word = one.line.split()[1]
        place = "describe" if word in ("channel", "compose") else word
        lines[place] = (*lines.get(place, ()), one)
    return [one.name for one in lines.get(command, ())]


@pytest.mark.parametrize("command", [name for name in STORED if recorded(name)])
def test_recorded_results_are_valid(command):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    validator = jsonschema.Draft202012Validator(schema(command))
    found = 0
    for name in recorded(command):
        for place, content in load(name).items():
            if not place.endswith(".json"):
                continue
            found += 1
            if "releases" in content or "estimates" in content:
                content = of_now(content)
            for error in validator.iter_errors(content):
                # Recordings leave out what differs from run to run.
                assert error.validator == "required", (name, error.message)
                assert error.message.split("'")[1] in VOLATILE, (name, error.message)
    assert found


def of_now(content):
    """Return a recorded result or comparison with the version of today."""
    releases = {"releases": [of_now(one) for one in content.get("releases", ())]}
    now = content | {"schema_version": SCHEMA_VERSION}
    if "public" in content:
        release = content["public"]["release"] | {"sha256": None}
        now |= {"public": content["public"] | {"release": release}}
    return now | releases if "releases" in content else now


def test_a_result_is_valid_and_a_wrong_one_is_not():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    validator = jsonschema.Draft202012Validator(schema("run"))
    assert list(validator.iter_errors({"schema_version": SCHEMA_VERSION, "verdict": "perhaps"}))
    assert set(schema("run")["properties"]) >= set(AuditResult.model_fields)


def test_no_command_of_that_name():
    with pytest.raises(InputError, match="did you mean 'sweep'"):
        schema_of("sweeps")
