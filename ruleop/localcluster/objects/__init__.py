"""Pure functions over objects: field sets and their managers, server-side apply, patches, selectors, validation.

Objects are plain JSON and treated as frozen: each function returns a new one, which may share parts with its arguments.
Where the server's own messages reach a client, they are spelled as the real server spells them.
"""
