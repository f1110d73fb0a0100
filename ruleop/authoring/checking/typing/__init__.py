"""Types of values in templates and expressions, inferred without rendering.

Nothing here is a proof of correctness. Where a value is not known for certain its type is unknown, and an unknown type
is never a finding: a false alarm costs more than a mistake that the next pass reports anyway.
"""
