"""What is known of each host, and editors for the formats of their files. Must not know files: text in, text out."""
