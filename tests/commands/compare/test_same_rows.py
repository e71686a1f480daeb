"""What a stored comparison says of its command."""

from ldpaudit.cli.commands import compare
from ldpaudit.cli.parameters import recorded_command


def test_the_stored_command_names_no_file_and_no_column() -> None:
    words = ["ldpaudit", "compare", "secret/a.parquet", "b.parquet", "--truth", "t.parquet"]
    words += ["--seed", "7", "--drop=name", "--only=mechanism", "--force"]
    assert recorded_command(words, compare) == (
        "ldpaudit compare … … --truth … --seed 7 --drop=… --only=mechanism --force"
    )
