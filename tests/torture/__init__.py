"""The robustness trials (quality.md): each runs the built file as real processes, from a seed, and counts what was lost."""
