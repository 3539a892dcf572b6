"""Pulumi components: they only declare; the provider and the Fabric steps act."""
