"""A trained model as a release: what it reveals about the labels that it was trained on.

In: a training procedure, a table and its true labels, and what was promised. Out: a certified lower
bound of ε, and the verdict: :func:`ldpaudit.audit_model`.
"""
