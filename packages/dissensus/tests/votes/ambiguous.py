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
    ("slider.csv", "item,worker,score\n" + "".join(f"{k // 3},w{k % 3},{k * 37 % 1009 / 10}\n" for k in range(66)), []),
    (
        "codes.csv",
        "item,worker,rating\n" + "".join(f"{k // 3},w{k % 3},{(1, 2, 3, 99)[k % 4]}\n" for k in range(24)),
        [],
    ),
    ("lists.csv", "id,labels\na,\"['x', 'y']\"\nb,\"['y', 'x']\"\n", []),
    ("commas.csv", 'id,label\na,"1,2"\nb,"2,1"\nc,"1,3"\nd,"3,2"\n', []),
    ("ids.csv", "id,task,label\n" + "".join(f"x{k},t{k % 3},{'ab'[k % 2]}\n" for k in range(12)), []),
    (
        "task.csv",
        "id,task,worker,label\n" + "".join(f"x{k // 2},t{k % 4 // 2},w{k % 2},{'ab'[k % 3 % 2]}\n" for k in range(12)),
        ["--item", "task"],
    ),
    (
        "empty.csv",
        "id,worker,answer,mood\n"
        + "".join(f"{k // 3},w{k % 3},{'a'[k % 5 :]},{'xyz'[k * k % 7 % 3]}\n" for k in range(30)),
        [],
    ),
    ("texts.csv", "id,worker,text,label\n" + "".join(f"{k},w{k % 3},t{k // 3},{'ab'[k % 2]}\n" for k in range(30)), []),
    (
        "flags.csv",
        "id,worker,joy,fear\n" + "".join(f"{k // 3},w{k % 3},{k % 2},{k * k % 5 % 2}\n" for k in range(30)),
        [],
    ),
    ("blanks.csv", "item,worker,label\na,x,yes\na,y,NA\nb,x,no\nb,y,\nc,x,None\n", []),
    ("percent.csv", "item,yes,no\na,80 %,20 %\nb,60 %,40 %\nc,20 %,80 %\n", []),
    (
        "criterion.csv",
        "item,criterion,score\n"
        + "".join(f"{k // 6},{('fluent', 'true')[k % 2]},{k * k % 7 % 5 + 1}\n" for k in range(48)),
        [],
    ),
    (
        "gold.csv",
        "item,worker,answer,label\n"
        + "".join(f"{k // 3},w{k % 3},{'xy'[k % 2]},{'xy'[k // 3 % 2]}\n" for k in range(24)),
        [],
    ),
    ("milliseconds.csv", "item,worker,label,rt\na,x,yes,640\na,y,no,712\nb,x,no,598\nb,y,no,903\n", []),
    ("a word.csv", "item,worker,rating\na,x,4\na,y,NA\nb,x,5\n", []),
]
