"""Shell programs in the place of real ones."""

REFUSING = "#!/bin/sh\nexit 2\n"
WRITING = """#!/bin/sh
echo "$@" "$LDPAUDIT_TRUTH" > called
touch "$LDPAUDIT_HTML" "$LDPAUDIT_JSON" "$LDPAUDIT_JUNIT" "$LDPAUDIT_MARKDOWN"
"""
"""Programs in the place of ldpaudit: one refuses its input, one writes what is asked for."""
INSTALLER = """#!/bin/sh
if [ "$1 $2 $3" = "-P -m pip" ]; then shift 4; echo "$@" >> "$PIP_LOG"; exit; fi
exec {python} "$@"
"""
