"""Reads and writes files whose fields are separated by ``|``: ``patients.pipe``."""

from pyarrow import csv

from ldpaudit.doors import Reader


def read(path):
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="|"))


def write(table, path):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="|"))


PIPES = Reader(endings=(".pipe",), read=read, write=write)
