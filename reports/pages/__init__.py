"""Pages as plain values for the templates.

In: a result or a comparison. Out: tiles, parts, figures and tables in their order.
"""
