"""Pulumi components: they declare what a cluster and its job are made of; the provider and the Fabric steps act."""
