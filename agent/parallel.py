"""Do the same for several things at the same time."""

import threading


def parallel(act, items):
    """Return what ``act`` returned for each of the items, all of them at the same time; raise what one of them raised."""
    answers, errors = {}, []

    def run(number, item):
        try:
            answers[number] = act(item)
        except Exception as error:  # noqa: BLE001 - raised below, where somebody hears it
            errors.append(error)

    # None of them keeps a process that was told to end.
    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(items)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(threads))]
