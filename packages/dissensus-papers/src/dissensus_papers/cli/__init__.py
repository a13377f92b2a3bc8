"""The commands of this part: they parse, call a room and print; nothing is computed here."""
