"""CRDs as files, and their changes that break something."""
