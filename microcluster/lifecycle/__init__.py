"""Pulumi and the account of a stack: how they are run and read, and what a killed command leaves."""
