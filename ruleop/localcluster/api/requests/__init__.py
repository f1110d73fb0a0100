"""Parts of a request: its options, its body, the media types that it accepts."""
