"""Files of any kind: what is read of them, within limits, and how they are written whole.

In: paths; documents and code of others. Out: values that are safe to use, files that are whole,
or one error in one line. Tables are read in ``datasets``.
"""
