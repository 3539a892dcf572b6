"""The operator's verbs behind fabfile.py; each is a few lines over remote, launchers and the account."""
