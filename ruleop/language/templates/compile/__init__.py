"""Compiles templates: Jinja's environment and code generator, static analysis of templates, and hints on mistakes."""
