# Each target but down prepares .venv and calls `python -m microcluster <target>`; make alone prints what there is.
STACK ?= local
PYTHON ?= python3
VERBS := setup preview up down test chaos bench images engine emulator

.DEFAULT_GOAL := help
.PHONY: help venv $(VERBS)

help:
	@echo "make up                 rent the cluster of STACK, train on it, report; sets everything up first"
	@echo "make down               stop the job, cancel everything, print the receipt"
	@echo "make preview STACK=p100 show what up would rent; needs no account and no network"
	@echo "make setup              install what all stacks need: Python packages, Pulumi engine, keys, stacks"
	@echo "make test               run all tests; says first which, and how long they take; FAST=1 for the quick ones alone"
	@echo "make chaos              kill the provider at every call and inject faults; SEED=7 repeats a run"
	@echo "make bench              measure the project's own figures"
	@echo "make images             build the images of the local stack"
	@echo "make engine             install the Pulumi engine only"
	@echo "make emulator           start the SoftLayer account that is emulated on this machine"
	@echo
	@echo "STACK=local (the default), or another of: $(patsubst stacks/Pulumi.%.yaml,%,$(wildcard stacks/Pulumi.*.yaml))"
	@echo "For the plain commands (pulumi ..., fab ...):  . ./env.sh"

venv:
	@$(PYTHON) -m microcluster.setup.venv

$(filter-out down,$(VERBS)): venv
	@.venv/bin/python -m microcluster $@ --stack "$(STACK)"

# Ending a bill needs what is installed and nothing else: no newer Python, no other lock file, no package index.
down:
	@.venv/bin/python -c "" >/dev/null 2>&1 || $(PYTHON) -m microcluster.setup.venv || \
		{ echo "make down: nothing was cancelled, and the account of stack $(STACK) was not asked."; exit 1; }
	@.venv/bin/python -m microcluster down --stack "$(STACK)"
