"""Decisions on pay, sent to Prolific by its API instead of uploaded as files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

API: Final = "https://api.prolific.com/api/v1"
TOKEN: Final = "PROLIFIC_TOKEN"
"""The environment variable that holds the researcher's token."""


def send_to_prolific(files: Mapping[str, str], *, study: str | None, api: str = API) -> list[str]:
    """Approves submissions and pays bonuses as the bulk files say, and returns what was done, in sentences.

    Rejections are left to the researcher: Prolific wants a category and a conversation for each. Nothing is tried
    twice, since Prolific pays a bonus as often as it is asked to: where a request fails, the refusal says which of the
    files are still to be uploaded by hand.
    """
    token = os.environ.get(TOKEN)
    if not token or not study:
        missing = f"the environment variable {TOKEN}" if not token else "study under [recruitment] in collect.toml"
        raise InputError(f"Prolific's API needs {missing}; give it, or upload the files")
    done = []
    if people := files.get("prolific-approve.txt", "").split():
        asked = {"study_id": study, "participant_ids": people}
        _post(f"{api}/submissions/bulk-approve/", asked, token, left="all files")
        done.append(f"approved {len(people):,} submissions on Prolific")
    if bonuses := files.get("prolific-bonus.csv", ""):
        asked = {"study_id": study, "csv_bonuses": bonuses}
        made = _post(f"{api}/submissions/bonus-payments/", asked, token, left="prolific-bonus.csv")
        left = f"nothing, but look on Prolific whether the bonuses {made['id']} were paid"
        _post(f"{api}/bulk-bonus-payments/{made['id']}/pay/", {}, token, left=left)
        done.append(f"paid {bonuses.count(chr(10)):,} bonuses on Prolific")
    if "prolific-reject.csv" in files:
        done.append("rejections are yours to make on Prolific: prolific-reject.csv")
    return done


def _post(url: str, body: Mapping[str, Any], token: str, *, left: str) -> Any:
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
            return json.loads(answer.read() or b"{}")
    except HTTPError as error:
        said = f"{error.code}: {error.read(300).decode(errors='replace')}"
    except (OSError, ValueError) as error:
        said = str(error)
    raise InputError(f"Prolific did not take it ({said}); still to be uploaded by hand: {left}")
