"""Judging a result: the policy, the checks that it asks for, the verdict."""

# In: what the audits found, and a policy. Out: each check's answer, one verdict and its sentence.
