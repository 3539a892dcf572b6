"""Sentence pairs out of translation catalogs."""

import struct

import pytest
from catalogs import licence_names, read_catalog
from cleaning import clean, clean_text, split, usable


def compiled(messages: dict[str, str]) -> bytes:
    """A .mo file, written by hand after the format's description."""
    entries = sorted((key.encode(), value.encode()) for key, value in messages.items())
    count, tables, texts = len(entries), b"", b""
    start = 28 + 16 * count
    for column in (0, 1):
        for entry in entries:
            tables += struct.pack("<II", len(entry[column]), start + len(texts))
            texts += entry[column] + b"\0"
    return struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0) + tables + texts


def test_a_catalog_gives_texts_without_their_context_and_plurals_by_their_singular():
    content = compiled(
        {
            "": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n != 1;\n",
            "menu\x04Open file": "Datei öffnen",
            "one file\0many files": "eine Datei\0viele Dateien",
        }
    )
    assert read_catalog(content) == {("Open file", "Datei öffnen"), ("one file", "eine Datei")}


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("_Open the file...", "Open the file"),
        ("&Datei öffnen…", "Datei öffnen"),
        ("Zoom ~All:", "Zoom All"),
        ("Alle anzeigen (_A)", "Alle anzeigen"),
        ("two\n  lines", "two lines"),
        ("der »alte« Name", 'der "alte" Name'),
        ("Save && quit", "Save & quit"),
    ],
)
def test_accelerators_ends_and_quotation_marks_are_made_plain(raw, cleaned):
    assert clean_text(raw) == cleaned


@pytest.mark.parametrize(
    "pair",
    [
        ("%s of %d", "%s von %d"),
        ("Open file %s", "Datei %s öffnen"),
        ("Use <b>this</b>", "Nutze <b>dies</b>"),
        ("Click here", "Hier klicken, um zu der Seite mit allen Angaben zu kommen"),
        ("Open Document", "open document"),
        ("File", "Datei"),
        ("1.2.3 (4)", "1.2.3 [4]"),
    ],
    ids=["placeholders", "a placeholder", "markup", "length", "the same", "one word", "no letters"],
)
def test_what_teaches_no_translation_is_left_out(pair):
    assert not usable(*pair)


def test_an_english_text_is_kept_once_with_the_translation_that_occurs_most():
    messages = [("Open file", "Datei öffnen"), ("Open File", "Datei öffnen"), ("Open _file", "Öffne Datei")]
    assert clean(messages) == [("Open File", "Datei öffnen")]


def test_the_order_of_the_messages_does_not_matter():
    messages = [
        ("Open file", "Datei öffnen"),
        ("Close the window", "Das Fenster schließen"),
        ("Open file", "Öffne Datei"),
    ]
    assert clean(messages) == clean(reversed(messages))


def test_the_split_is_a_partition_that_a_new_pair_hardly_moves():
    pairs = [(f"sentence number {n}", f"Satz Nummer {n}") for n in range(200)]
    training, evaluation = split(pairs, 20)
    assert (len(evaluation), sorted(training + evaluation)) == (20, sorted(pairs))
    _, later = split([*pairs, ("one more sentence", "noch ein Satz")], 20)
    assert len(set(evaluation) - set(later)) <= 1


def test_licence_names_are_read_from_a_machine_readable_file():
    assert licence_names("Files: *\nLicense: GPL-2+\n text\n\nFiles: x\nLicense: Expat\n") == ("Expat", "GPL-2+")
