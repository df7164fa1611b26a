"""The index: what was seen where, and what was meant; SQLite behind the ports Reader, Writer and Journal."""
