"""`dissensus collect`: make a project, serve it, watch it, simulate it, export its votes.

Commands parse, call a room and print; a room is imported when its command is typed.
"""

# In the order of the help.
from dissensus_collect.cli import project, votes, items, people, machine  # noqa: F401, I001
from dissensus_collect.cli.shared import app as app
