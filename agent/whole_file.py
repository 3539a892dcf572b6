"""Write a file so that nobody ever reads half of it, also after a crash."""

import os


def write_whole(path, text):
    """Replace a file at once."""
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
