"""A run on nodes that a queue grants: submitted on the site's login host, carried out by the queue's job on the first node.

The login host and all nodes see one folder of the run.
"""

REQUEST, GRANTED, STOP, ENDED, CACHE = "request.json", "granted.json", "stop_asked", "nodes_ended.json", "qstat.json"
"""In the run's folder: what is asked of the queue; which nodes it granted and until when; the wish that the job ends; and how its
processes ended on each node; the rows of qstat as they were a moment ago."""
CHOSEN = "chosen_job"
"""There too, written once: the number of the one job that may carry out the run."""
SECRETS = "secrets"
"""A folder there: what the program is given and nobody else reads; it goes with the job."""
