"""Where votes are kept: the database, its items and their slots, the log, and backups."""
