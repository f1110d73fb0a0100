"""The filters and tests of templates, by the type of value that they work on. `registry` lists all of them."""
