"""Processes that measure the points of a sweep within a memory limit.

In: tasks. Out: answers, in the order in which they are ready.
"""
