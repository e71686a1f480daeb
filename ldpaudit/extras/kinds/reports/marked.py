"""Text in Markdown: what a name or a sentence holds never becomes markup, a link or a mention."""

import re
from typing import Final

from ldpaudit.result.harmless import name, shown

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~$!&])")
_LINKS: Final = re.compile(r"(?<=:)//|(?<=\bwww)\.", re.IGNORECASE)


def marked(text: str, limit: int = 1000) -> str:
    """Return a sentence that Markdown shows as it is; ``@`` is written wide, so it calls nobody."""
    plain = _MARKUP.sub(r"\\\1", shown(text, limit)).replace("@", "＠")
    return _LINKS.sub(lambda found: "".join(f"\\{letter}" for letter in found[0]), plain)


def quoted_name(text: str) -> str:
    """Return a name as code, whatever characters it has; also for a cell of a table."""
    return f"`` {name(text).replace('`', 'ˋ').replace('|', '¦')} ``"
