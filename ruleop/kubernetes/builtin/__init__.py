"""Kubernetes' own kinds: their types, defaults and immutable fields, and objects as the server stores them."""
