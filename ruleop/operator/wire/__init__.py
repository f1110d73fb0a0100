"""The wire: how ruleop connects to an API server, sends requests to it and watches objects.

From below:

- `http` has connections, TLS and the parser; `auth` finds credentials; `client/session` connects the two.
- `client/requests` prepares a request, as a pure function; `client` sends it, and turns every failure into an
  `ApiError` (`errors`) with a reaction.
- `client/discovery` lists the kinds that are served, and their schemas.
- `watch/reflector` is the state machine that follows a collection; `store` holds the objects; `watcher` drives both.
- `leader` decides which of several processes may write; `client/event_recorder` sends Events.

The state machines (reflector, lease, event correlator) do no I/O and take time and randomness as arguments.
"""
