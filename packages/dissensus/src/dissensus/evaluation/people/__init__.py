"""Evaluation for people: how well single votes are predicted, by person and by group."""
