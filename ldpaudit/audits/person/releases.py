"""Several releases of the same people: what all of them together give away."""

from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.person.bounds import bounds_finding
from ldpaudit.audits.person.claimed import claimed_estimates, guess_curve
from ldpaudit.audits.person.noise import found_noise
from ldpaudit.audits.person.people import people_estimates, people_notes
from ldpaudit.audits.person.seen_releases import SeenReleases
from ldpaudit.audits.person.votes import votes_finding
from ldpaudit.audits.person.words import noise_estimates, noise_notes
from ldpaudit.result import Finding, Note, together

_NO_TRUTH = (
    "Without true labels (--truth) ε of all releases together is not bounded from below; each "
    "release is bounded by itself."
)


class ReleasesAudit:
    """Bounds ε of all releases together, tells their noise apart, guesses labels by vote."""

    id = "person"
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        return "there is one release" if context.repeats is None else None

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        seen = SeenReleases.of(context)
        context.progress.step("comparing the noise of the releases")
        noise = found_noise(seen)
        findings = [
            Finding((*people_estimates(seen),), notes=(*people_notes(seen),)),
            Finding((*claimed_estimates(seen),), (*guess_curve(seen),)),
            Finding((*noise_estimates(seen, noise),), notes=(*noise_notes(seen, noise),)),
        ]
        if not seen.releases.known:
            findings.append(Finding(notes=(Note.info("person", _NO_TRUTH),)))
            return together(findings)
        context.progress.step("bounding ε of all releases together")
        findings.append(bounds_finding(seen, noise))
        if not context.out_of_time():
            context.progress.step("guessing labels by vote over the releases")
            findings.append(votes_finding(seen, noise))
        return together(findings)
