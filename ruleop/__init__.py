"""ruleop: a Kubernetes operator without code. Custom resources become child resources by rules and templates."""

__version__ = "0.1.0"
