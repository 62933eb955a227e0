"""The store: plain Markdown files that a person can read and Git can merge, and what guards them.

Must not know how ranking works or who asks.
"""
