"""The values of templates: data, text with slots and undefined values, and the operations on them."""
