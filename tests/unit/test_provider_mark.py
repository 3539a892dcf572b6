"""The owner mark: what is ours, and what only looks like it."""

import pytest

from microcluster.core import home

OURS = "1f3a9c42"
LOCAL = home.Owner("local", OURS)


@pytest.mark.parametrize(
    "domain",
    [
        *("local-1f3a9c43.microcluster", f"{OURS}.microcluster", f"local-{OURS}.microcluster.example.com"),
        *(f"local-{OURS}0.microcluster", f"local-{OURS}xmicrocluster", f"local-{OURS}.example.com"),
        *("local.microcluster", "local-1f3a9c4.microcluster", f"local-{OURS.upper()}.microcluster"),
        *(f"-{OURS}.microcluster", f"local-{OURS}.microcluster\n", f"p100-{OURS}.microcluster", "", None),
    ],
)
def test_a_domain_that_only_looks_like_ours_is_foreign(domain):
    assert home.owner_in_domain(domain) != LOCAL


@pytest.mark.parametrize(
    ("stack", "notes"),
    [
        *(("my.stack", f"microcluster my.stack-{OURS} gpu-0"), ("s", f"microcluster s-{OURS}: d")),
        *((None, notes) for notes in ("", None, OURS, f"copy of microcluster s-{OURS}")),
        *((None, notes) for notes in (f"microcluster s-{OURS}a", f"microcluster {OURS}")),
    ],
)
def test_only_notes_that_begin_with_stack_and_mark_are_an_owners(stack, notes):
    assert home.owner_in_notes(notes) == (home.Owner(stack, OURS) if stack else None)


def test_owner_marks_in_domain_notes_and_tags_are_those_the_provider_reads():
    owner = home.Owner("v100", OURS)
    assert home.owner_in_domain(owner.domain) == owner
    assert home.owner_in_notes(owner.notes) == owner
    assert owner.tags == ("microcluster", f"mc-mark-{OURS}", "mc-stack-v100")
