"""The operator: the wire to the API server, and the loop that carries plans out."""
