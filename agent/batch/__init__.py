"""A run on nodes that a queue grants: submitted on the site's login host, carried out by the queue's job on the first node.

The login host and all nodes see one folder of the run.
"""
