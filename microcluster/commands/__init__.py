"""The commands of fabfile.py, a module for each; each is a few lines over remote, jobs and the account."""
