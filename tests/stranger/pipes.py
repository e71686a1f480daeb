"""Reads files whose fields are separated by ``|``: ``patients.pipe``."""

from pyarrow import csv

from ldpaudit.doors import Reader


def read(path):
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="|"))


PIPES = Reader(endings=(".pipe",), read=read)
