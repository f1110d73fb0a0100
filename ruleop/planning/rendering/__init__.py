"""The desired objects of a child: what its templates see, and what they render to."""
