"""A page on this computer that runs the commands: ``ldpaudit open``."""

# In: what a browser on this computer sends, with the page's secret address. Out: the commands' own
# results and pages, for as long as the page is open; nothing is worked out here.
