"""Audits: each looks at a release from one side and returns a finding."""
