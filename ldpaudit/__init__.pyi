from ldpaudit import attacks as attacks
from ldpaudit import datasets as datasets
from ldpaudit import doors as doors
from ldpaudit import learners as learners
from ldpaudit import mechanisms as mechanisms
from ldpaudit import reports as reports
from ldpaudit import synthesis as synthesis
from ldpaudit.api import audit as audit
from ldpaudit.errors import InputError as InputError
from ldpaudit.errors import LdpAuditError as LdpAuditError
from ldpaudit.extras.choose.calls import advise as advise
from ldpaudit.extras.choose.calls import describe as describe
from ldpaudit.extras.choose.calls import sweep as sweep
from ldpaudit.extras.compare.calls import compare as compare
from ldpaudit.extras.compare.comparison import Comparison as Comparison
from ldpaudit.extras.probe.models.audit import audit_model as audit_model
from ldpaudit.extras.probe.models.predictions import audit_predictions as audit_predictions
from ldpaudit.extras.release.calls import privatize as privatize
from ldpaudit.mechanisms import RandomizedResponse as RandomizedResponse
from ldpaudit.result import AuditResult as AuditResult

__version__: str
