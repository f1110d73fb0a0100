"""The wire: everything that ruleop knows of an API server, and all that it says to one.

From below:

- `credentials` finds out where the API server is and who we are to it; `session` holds the connections.
- `requests` prepares a request, as a pure function; `client` sends it, and makes every failure an `ApiError` (errors) that says what to do.
- `discovery` tells which kinds are served, and how they look.
- `reflector` is the state machine that follows a collection; `store` holds what it found; `watcher` drives one into the other.
- `lease` and `election` say which of several processes may write; `events` tells people what happened.

The state machines (reflector, lease, the book of events) do no I/O and take time and randomness as arguments.
"""
