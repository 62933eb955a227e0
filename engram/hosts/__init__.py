"""What is known of each host: a table with a row per host. Must not know files; the editors are a room of their own."""
