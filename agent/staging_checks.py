"""Check whether finished data can be trained on, and write the sums by which every host knows them."""

import os

from agent.build_cache import sha256_of
from agent.staging_log import Refused, say
from agent.text_cleaning import count_lines

SUMS, ID, RECORDS = "SHA256SUMS", "ID", "archives.json"
EIGHT = 8
"""Only training pads the vocabulary to a multiple of it: with another number the first evaluation fails."""


def check(folder, plan):
    """Raise unless lines pair and the vocabulary has the size that the model is made for."""
    problems = []
    for pair in plan["pairs"]:
        counts = [count_lines(os.path.join(folder, name)) for name in pair]
        if counts[0] != counts[1] or not counts[0]:
            output = " and ".join(pair) + " have " + str(counts[0]) + " and " + str(counts[1]) + " lines"
            problems.append(output + ", which do not pair" if counts[0] != counts[1] else output)
        else:
            say(" and ".join(pair) + ": " + str(counts[0]) + " lines each")
    vocabulary, wanted = plan["vocabulary"]
    pieces = count_lines(os.path.join(folder, vocabulary))
    if pieces % EIGHT:
        problems.append(vocabulary + " has " + str(pieces) + " lines, which is no multiple of " + str(EIGHT))
    elif pieces != wanted:
        problems.append(vocabulary + " has " + str(pieces) + " lines instead of " + str(wanted))
    if problems:
        raise Refused("checking the data: " + "; ".join(problems) + ". Nothing was trained.")


def seal(folder, plan):
    """Name the data and write the sums of all that belongs to them; with the sums they are finished."""
    with open(os.path.join(folder, ID), "w") as file:
        file.write(plan["id"] + "\n")
    names = plan["files"] + plan["optional"] + [ID, RECORDS]
    there = [name for name in names if os.path.exists(os.path.join(folder, name))]
    path = os.path.join(folder, SUMS)
    with open(path + ".new", "w") as file:
        for name in there:
            file.write(sha256_of(os.path.join(folder, name)) + "  " + name + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
    say("finished: " + str(len(there)) + " files in " + folder)
