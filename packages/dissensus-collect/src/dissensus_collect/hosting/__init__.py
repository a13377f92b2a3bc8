"""A project on a machine: serving it, its connections, deployment and health."""
