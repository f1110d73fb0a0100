"""Options, projects, files and clusters that several commands read."""
