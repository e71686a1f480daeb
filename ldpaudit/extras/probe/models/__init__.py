"""A trained model as a release: what it reveals about the labels that it was trained on."""

# In: a training procedure, or predictions for the rows it was trained on, their labels, and what
# was promised. Out: a lower bound of ε, and the verdict: :func:`ldpaudit.audit_model`,
# :func:`ldpaudit.audit_predictions`.
