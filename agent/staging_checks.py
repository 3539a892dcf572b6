"""Check whether finished data can be trained on, and write the sums by which every host knows them."""

import os

from agent.build_cache import sha256_of
from agent.staging_log import Refused, say
from agent.text_cleaning import count_lines
from agent.whole_file import write_whole

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
    if plan["vocabulary"]:
        problems += flaws_of_vocabulary(folder, *plan["vocabulary"])
    if plan.get("words"):
        problems += flaws_of_words(folder, *plan["words"])
    if problems:
        raise Refused("checking the data: " + "; ".join(problems) + ". Nothing was trained.")


def flaws_of_vocabulary(folder, vocabulary, wanted):
    """Return what is wrong with the number of pieces, which stand on a line each."""
    pieces = count_lines(os.path.join(folder, vocabulary))
    if pieces % EIGHT:
        return [vocabulary + " has " + str(pieces) + " lines, which is no multiple of " + str(EIGHT)]
    return [vocabulary + " has " + str(pieces) + " lines instead of " + str(wanted)] if pieces != wanted else []


def flaws_of_words(folder, text, wanted):
    """Return what is wrong with the number of different words of a text, in which the end of a line is a word too."""
    found = {"<EOS>"}
    with open(os.path.join(folder, text), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found.update(line.split())
    words = "{} has {} different words, line ends counted as one, instead of the {} that the program insists on"
    return [words.format(text, len(found), wanted)] if len(found) != wanted else []


def seal(folder, plan):
    """Name the data and write the sums of all that belongs to them; with the sums they are finished."""
    with open(os.path.join(folder, ID), "w") as file:
        file.write(plan["id"] + "\n")
    names = plan["files"] + plan["optional"] + [ID, RECORDS]
    there = [name for name in names if os.path.exists(os.path.join(folder, name))]
    lines = [sha256_of(os.path.join(folder, name)) + "  " + name + "\n" for name in there]
    write_whole(os.path.join(folder, SUMS), "".join(lines))
    say("finished: " + str(len(there)) + " files in " + folder)
