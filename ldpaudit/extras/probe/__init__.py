"""Randomizers and trained models: ``mechanism audit``, ``audit_model``, ``run --predictions``."""

# In: a function that randomizes, a training procedure, or a model's predictions. Out: certified
# lower bounds on ε, and a verdict on the claim.
