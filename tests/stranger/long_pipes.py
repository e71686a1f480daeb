"""Reads files whose fields are separated by ``|`` a piece at a time: ``patients.pipes``."""

from pyarrow import csv

from ldpaudit.doors import Reader


def stream(path, columns):
    return csv.open_csv(
        path,
        parse_options=csv.ParseOptions(delimiter="|"),
        convert_options=csv.ConvertOptions(include_columns=columns),
    )


LONG_PIPES = Reader(endings=(".pipes",), stream=stream)
