"""From text to objects and back: YAML and JSON read and written, slots laid out, parsed and filled."""
