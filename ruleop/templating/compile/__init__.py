"""From source to something that renders: Jinja's environment and compiler, what a template reads and makes, and hints on mistakes."""
