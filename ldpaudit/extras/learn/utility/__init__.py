"""How useful a release still is: a model trained on it, scored on test rows."""

# In: a release and test rows. Out: a certified score, and one number for each test row.

from typing import Literal

# Of numbers, ``logistic`` stands for ridge regression.
ModelKind = Literal["logistic", "boosting", "network"]
# As :data:`ModelKind`, or a linear model by inverse-Weierstrass private SGD.
LearnerKind = Literal["logistic", "boosting", "network", "iwp"]
