"""Text to objects: templates whose values never meet the YAML parser."""

from ruleop.templating.yaml_reader import YamlNode, read_yaml

__all__ = ["YamlNode", "read_yaml"]
