"""Subresources, and the reviews that are answered without being stored."""
