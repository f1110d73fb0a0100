"""A controller for each kind of custom resource: which events become passes of its custom resources."""
