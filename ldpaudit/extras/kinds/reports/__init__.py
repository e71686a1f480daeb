"""Reports for pipelines: SARIF, JUnit and Markdown, and what of them everybody may see."""

# In: a result, or its public form. Out: text, the same every time.
