"""Pulumi's provider protocol over gRPC; knows no vendor."""
