"""Print what a node has of a run in rows that are read one by one: JSON, names as percent-encoded bytes.

Sent as an argument and run beside the run's own agent, whichever version that is. Arguments: the run's folder, the request of
``records.inventory``. The first row has the run's word and step, every other one a list's name and an entry of it. No row: no such run.
"""

import json
import os
import re
import subprocess
import sys
from urllib.parse import quote

LISTS = ("files", "left", "links")
PATHS = ("path", "source", "target")
PLAIN = re.compile("[A-Za-z0-9_.~/-]*").fullmatch
"""Whether a name is the same when it is encoded."""


def main(folder: str, request: str) -> None:
    if not os.path.exists(os.path.join(folder, "job.json")):
        return
    if not os.path.exists(os.path.join(folder, "agent", "__main__.py")):
        sys.exit("an earlier version of microcluster has made {}; fetch it with that version".format(folder))
    argv = ["python3", os.path.join(folder, "agent"), "records.inventory", folder, request]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    output = child.communicate()[0]
    if child.returncode:
        sys.exit(child.returncode)
    found = json.loads(output.decode("utf-8", "replace"))
    print(json.dumps({name: value for name, value in found.items() if name not in LISTS}))
    text = json.JSONEncoder().encode
    for name in LISTS:
        for one in found.get(name, ()):
            one["list"] = name
            for key in PATHS:
                if key in one and not PLAIN(one[key]):
                    one[key] = quote(os.fsencode(one[key]))
            print(text(one))


if __name__ == "__main__":
    main(*sys.argv[1:])
