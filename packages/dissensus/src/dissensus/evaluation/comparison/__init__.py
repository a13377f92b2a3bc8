"""Scores side by side: strata, intervals over items and seeds, differences and tests."""
