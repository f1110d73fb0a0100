"""The values of Secrets: how they are found, hidden and replaced, for all who show something.

The promise is the section "Secrets" of docs/security.md. In the terms of this room:

- A secret value is a value in `data` or `stringData` of a Secret, kubectl's copy of the object in an annotation, the
  result of a function such as `random_password`, and whatever a template computes from one of these. Checksums, names
  of keys, and values that are public anyway are not (`secret_fields`, `secret_values`).
- Rules derive what each child holds and reads of Secrets when they are loaded. Messages about a child, in conditions,
  Events, logs and plans, quote values only if its `Secrecy` allows it. Of a rejected write of what may hold such data,
  only the status, its reason and fields are shown (`secrecy`).
- Plans, explanations and failures of tests show `(hidden)`, by `Masks`: for the data of Secrets, for fields that can
  hold such data by their template and for known values wherever they are. The
  operator makes masks only for plans that it records.
- Recordings have `Placeholders`: equal values stay equal.

A value is known as a whole text from 4 characters, and inside longer text from 8.
"""
