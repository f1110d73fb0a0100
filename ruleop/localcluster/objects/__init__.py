"""Pure functions on objects: patches, server-side apply, selectors."""
