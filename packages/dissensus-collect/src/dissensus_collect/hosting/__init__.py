"""A project on a machine: serving it, deployment and health."""
