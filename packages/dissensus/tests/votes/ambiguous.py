"""Files that mean more than one thing: each must be refused with readings, and each reading must be read.

A row is a name, the content, and the options that the user gives already. `test_advice.py` types what is advised.
"""

from __future__ import annotations

from typing import Final

AMBIGUOUS: Final[list[tuple[str, str, list[str]]]] = [
    ("numbers.csv", "item,x,y\na,1,2\nb,2,2\nc,1,3\n", []),
    ("nested.json", '{"i": {"x": "a", "y": "b"}, "j": {"x": "a", "y": "a"}}', []),
    ("numbers and a name with blanks.csv", "my item,x,y\na,1,2\nb,2,2\nc,1,3\n", ["--item", "my item"]),
    ("ranks.csv", "item,taste,price\na,1,2\nb,2,1\nc,1,2\n", []),
    ("none of them.csv", "item,toxic,threat\na,1,2\nb,0,0\nc,1,0\n", ["--format", "counts"]),
    ("final.csv", "item,anna,ben,final\na,x,y,y\nb,y,y,x\nc,x,x,y\n", []),
]
