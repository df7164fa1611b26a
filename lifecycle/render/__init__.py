"""How things are shown: values in, lines of text or JSON values out; nothing is printed here."""
