"""What a study adds to a report: its subject, its figures and its tables."""
