"""The session tier: what agents noted while they worked, in one SQLite file per user.

Must not know MCP or terminals. Reference only, never approved: nothing in here becomes an instruction by
itself (session.md). `tier.Tier` is one process's view of it; `tools` has the functions under the `mem_*`
tools and under `engram mem`.
"""
