"""The bodies of children and statuses, by the schemas of their kinds."""
