"""Edit texts in place, by position, with every other byte kept. Must not know files or hosts: text in, text out."""
