"""From a request to an answer: routes, verbs, watches, discovery, and errors as the real server words them."""
