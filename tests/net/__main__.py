"""Compare what the tool says today with the stored values: `python -m tests.net`, or `make net`.

`python -m tests.net write` stores today's values and seconds. `python -m tests.net changes` prints rows for changes.md.
Further arguments are rooms, or patterns of the names of cases, such as `'evaluate*'`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the cases, print what differs, and return the exit code."""
    for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")
    from tests.net import adapter
    from tests.net import comparing as net

    does = arguments[0] if arguments and arguments[0] in ("write", "changes") else "compare"
    patterns = arguments[does != "compare" :]
    cases = net.read_cases()
    names = [case.name for case in cases]
    gone = net.read_gone(names)
    chosen = [
        case
        for case in net.runnable(cases)
        if case.name not in gone
        and (not patterns or case.room in patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns))
    ]
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        workshop = adapter.Adapter(Path(folder))
        ran = [net.run_case(case, workshop) for case in chosen]
    errors = [each for each in ran if each.error]
    if does == "write":
        for each in errors:
            print(f"{each.case.name}: {each.error}")
        if errors:
            return 1
        found = {each.case.name: each.numbers for each in ran}
        stored = net.read_values() if net.VALUES.exists() else {}
        # A case that cannot run here keeps its values.
        kept = {name: found.get(name) or stored.get(name) for name in names}
        net.write_values({name: numbers for name, numbers in kept.items() if numbers})
        timed = json.loads(net.SECONDS.read_text(encoding="utf-8")) if net.SECONDS.exists() else {}
        timed |= {each.case.name: round(each.seconds, 3) for each in ran if "timed" in each.case.flags}
        net.SECONDS.write_text(json.dumps(timed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{sum(map(len, found.values()))} quantities of {len(ran)} cases written")
        return 0
    failures = net.compare_all(ran, net.read_values(), net.read_changes(names))
    if does == "changes":
        for failure in failures:
            old, new = (net.ABSENT if value is None else repr(value) for value in (failure.old, failure.new))
            print(f"| {failure.case} | {failure.quantity} | {old} | {new} |  |  |")
        return int(bool(errors))
    if failures:
        print(net.table(failures))
    first = json.loads(net.SECONDS.read_text(encoding="utf-8"))
    print("\nCPU seconds of ten calls: first commit, now")
    for each in ran:
        if "timed" in each.case.flags:
            print(f"  {first.get(each.case.name, float('nan')):7.2f} {each.seconds:7.2f}  {each.case.name}")
    apart = sum(each.seconds for each in ran if "data" in each.case.flags)
    skipped = len(cases) - len(net.runnable(cases))
    print(
        f"\n{len(ran)} cases, {sum(len(each.numbers) for each in ran)} quantities, {len(failures)} failures; "
        f"{time.process_time() - start:.1f} s of CPU, of which {apart:.1f} s with real data"
        + (f"; {skipped} cases skipped: DISSENSUS_DATA is not set" if skipped else "")
        + (f"; {len(gone)} cases gone" if gone else "")
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
