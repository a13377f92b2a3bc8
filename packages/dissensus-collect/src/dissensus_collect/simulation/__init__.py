"""Rehearsals of a project: bots that take part through its real server, over HTTP."""
