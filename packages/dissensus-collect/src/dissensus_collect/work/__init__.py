"""Who is shown which item, and what becomes of an answer: annotators, leases, gold items."""
