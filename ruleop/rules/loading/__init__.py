"""From a folder to a project: files, includes, the checks in order, the finished rules."""
