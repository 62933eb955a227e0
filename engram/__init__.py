"""Engram: memory for AI coding agents that belongs to the human."""

__version__ = "0.1.0"
