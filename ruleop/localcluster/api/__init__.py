"""From a request to a response: routes, verbs, watches, discovery, and errors as the real server words them."""
