"""Pulumi resource providers of this project."""
