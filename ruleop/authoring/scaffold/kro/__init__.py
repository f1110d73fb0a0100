"""A new project from ResourceGraphDefinitions of kro: the graph is read (`graphs`), its CEL expressions become Jinja
(`jinja_terms`, `cel_to_jinja`), and its resources become children (`kro_project`)."""
