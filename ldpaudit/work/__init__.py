"""What every command needs while it works: files written completely or not at all, processes,
memory, progress, and an early end.

Nothing here knows what an audit computes. In: paths, functions and limits. Out: complete files,
results of tasks, and progress.
"""
