"""The filters and tests of templates, by what they work on. `registry` is the list of all."""
