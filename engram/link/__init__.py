"""Make hosts know Engram, and take it back: plans (pure) and what applies them. Must not know the store."""
