"""One child after the other: rendered, compared with the live objects, applied or pruned, and whether it is ready."""
