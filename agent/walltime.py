"""End a run in order before the time is over that a queue granted: right after a checkpoint, so that no step is lost."""

CAUSE = "walltime"
NOTHING_SAVED = "the walltime ends, and nothing was saved in it"
UNKNOWN = object()
WINDOW_SHARE, WINDOW_MOST_S = 0.2, 900
"""From so long before the end on, the first new checkpoint ends the run."""


class Walltime:
    """What is known of the time: when the run has to have ended, and the newest checkpoint when the window began."""

    def __init__(self, ends_at, now):
        self.ends_at = ends_at
        self.begins_at = ends_at - min(WINDOW_MOST_S, WINDOW_SHARE * max(0.0, ends_at - now))
        self.before, self.first = None, UNKNOWN

    def verdict(self, now, newest):
        """Return why the run ends now, or an empty text; ``newest`` is the step of the newest whole checkpoint, or None."""
        if self.first is UNKNOWN:
            self.first = newest
        if now < self.begins_at:
            self.before = newest
            return ""
        if newest != self.before:
            return "the walltime ends; step {} was just saved, and the next submission goes on from it".format(newest)
        if now < self.ends_at:
            return ""
        if newest == self.first:
            return NOTHING_SAVED + ": let the program save more often, or ask for more time"
        return "the walltime ends; the next submission goes on from step {}".format(newest)


def saved_nothing(failure):
    """Return whether a run ended so that the next submission begins where this one did."""
    return failure["cause"] == CAUSE and failure["sentence"].startswith(NOTHING_SAVED)
