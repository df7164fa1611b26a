"""What is answered over HTTP: health, pages for people and values for programs. Nothing can be changed through it."""
