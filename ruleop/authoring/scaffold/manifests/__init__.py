"""The YAML of a running application becomes templates: what belongs to the cluster is dropped, names follow the custom
resource's name, and what varies moves into its spec."""
