"""A workbook whose entities grow without end is refused, also where defusedxml is missing."""

import zipfile

import pytest

from ldpaudit.datasets.reading import open_source
from ldpaudit.errors import InputError

openpyxl = pytest.importorskip("openpyxl")
ENTITIES = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
BOMB = f'<!DOCTYPE x [<!ENTITY a0 "lol">{ENTITIES}]>'


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml"])
def test_entities_are_not_expanded_without_end(part, tmp_path, monkeypatch):
    from xml.etree.ElementTree import fromstring, iterparse

    from openpyxl.reader import excel
    from openpyxl.worksheet import _reader

    # What openpyxl takes where defusedxml is not installed.
    monkeypatch.setattr(_reader, "iterparse", iterparse)
    monkeypatch.setattr(excel, "fromstring", fromstring, raising=False)
    book = openpyxl.Workbook()
    book.active.append(["label", "age"])
    book.active.append(["yes", 1])
    book.save(tmp_path / "book.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "book.xlsx") as honest,
        zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as hostile,
    ):
        for name in honest.namelist():
            text = honest.read(name).decode()
            if name == part:
                text = BOMB + text.partition("?>")[2] if text.startswith("<?xml") else BOMB + text
                text = text.replace("label", "&a11;").replace('name="Sheet"', 'name="&a11;"')
            hostile.writestr(name, text)
    assert open_source(str(tmp_path / "book.xlsx")).names == ("label", "age")
    with pytest.raises(InputError, match="damaged or truncated"):
        open_source(str(tmp_path / "bomb.xlsx"))
