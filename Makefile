# Each target but down prepares .venv and calls the command of its name; make alone prints what there is.
STACK ?= local
PYTHON ?= python3
COMMANDS := setup preview up down images engine emulator
TOOLS := test audit chaos bench
# The option of a variable that is set and does not say no.
OPTION = $(if $(filter-out 0 no,$($(1))),$(2))
UNSAVED = $(call OPTION,FETCH,--fetch) $(call OPTION,DISCARD,--discard)
# A program of ours with the environment of the commands, and without any key of an account.
WITHOUT_KEYS := .venv/bin/python -m microcluster.setup.environment .venv/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help venv $(COMMANDS) $(TOOLS)

help:
	@echo "make up                 rent the cluster of STACK, train on it, report; with DOWN=1 cancel it then"
	@echo "make down               stop the job, cancel everything, print the receipt"
	@echo "make preview STACK=p100 show what up would rent; needs no account"
	@echo "make setup              install what all stacks need: Python packages, Pulumi engine, keys, stacks"
	@echo "make test               run all tests; says first which, and how long they take; FAST=1 for the quick ones alone"
	@echo "make audit              look for known weaknesses of what is installed, insecure code and secrets in the history"
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

setup images engine: venv
	@.venv/bin/fab $@

preview emulator: venv
	@.venv/bin/fab $@ --stack "$(STACK)"

up: venv
	@.venv/bin/fab up --stack "$(STACK)" $(UNSAVED) $(call OPTION,DOWN,--down)

# Ending a bill needs what is installed and nothing else: no newer Python, no other lock file, no package index.
down:
	@.venv/bin/fab --version >/dev/null 2>&1 || $(PYTHON) -m microcluster.setup.venv || \
		{ echo "make down: nothing was cancelled, and the account of stack $(STACK) was not asked."; exit 1; }
	@.venv/bin/fab down --stack "$(STACK)" $(UNSAVED)

test: venv
	@$(WITHOUT_KEYS) tests.suites

audit: engine
	@.venv/bin/python -m microcluster.setup.environment tests/audit/run.sh

chaos: engine
	@$(WITHOUT_KEYS) tests.chaos $(if $(SEED),--seed "$(SEED)") $(if $(CASE),--case "$(CASE)")

bench: engine
	@$(WITHOUT_KEYS) tests.bench
