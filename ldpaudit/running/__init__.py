"""What long work needs: memory and scratch space, finished parts, an early end, progress.

In: options. Out: objects that audits ask. Nothing here knows what an audit computes.
"""
