"""How often the first label is released."""

from ldpaudit.doors import Estimate, Finding, clopper_pearson_lower


class FirstLabelAudit:
    id = "first-label"

    def unavailable(self, context):
        return None if len(context.release.outputs) > 1 else "only one label is released"

    def run(self, context):
        rows, level = len(context.release), context.plan.confidence
        count = int((context.release.released == 0).sum())
        share = Estimate.lower_bound(
            "first-label.share",
            "Share of the first label among the released ones",
            float(clopper_pearson_lower(count, rows, 1 - level)),
            level=level,
            unit="proportion",
            n=rows,
            count=count,
        )
        return Finding(estimates=(share,))
