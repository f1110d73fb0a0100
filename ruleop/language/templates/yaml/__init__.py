"""Text to objects and back: reads and writes YAML and JSON, and fills the slots of parsed templates with values."""
