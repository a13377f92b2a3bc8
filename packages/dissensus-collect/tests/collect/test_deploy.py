"""What puts a project on a machine of its own, and what looks after it there."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus_collect.hosting.deploy import SUBNET, write_deployment
from dissensus_collect.hosting.doctor import examine
from dissensus_collect.hosting.serving import checked_networks
from dissensus_collect.store.backup import back_up, file_integrity
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database
from dissensus_collect.web.logins import Logins
from tests.collect.test_browser import served
from tests.collect.web import visited, web_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project


def compose(project: Project, folder: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which reads the compose file, is not installed")
    write_deployment(project, folder, kind="docker", host="study.example.org")
    return yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))


def test_the_compose_file_serves_the_project_behind_caddy(tmp_path: Path) -> None:
    project = web_project(tmp_path / "My project: 50 % #1", texts=["one"])
    found = compose(project, tmp_path / "out")
    server, caddy = found["services"]["project"], found["services"]["caddy"]
    assert found["name"] == "dissensus-my-project-50-1"
    assert f"{project.folder.resolve()}:/project" in server["volumes"]
    assert "ports" not in server, "only Caddy can be reached from outside"
    assert set(server["networks"]) & set(caddy["networks"])
    # The address that people use, and the proxy that is trusted, are those of this very file.
    asked = dict(zip(server["command"][4::2], server["command"][5::2], strict=True))
    assert asked["--base-url"] == "https://study.example.org"
    assert asked["--trusted-proxy"] == SUBNET == found["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert checked_networks([SUBNET]) == [SUBNET]
    text = (tmp_path / "out" / "Caddyfile").read_text()
    assert "study.example.org {" in text
    assert all(f"read_{part}" in text for part in ("header", "body")), "half a request does not hold a connection"
    assert f"project:{asked['--port']}" in text
    assert "DISSENSUS_PASSWORD" in server["environment"]
    assert "=" not in (tmp_path / "out" / "Dockerfile").read_text().partition("DISSENSUS_PASSWORD")[2], (
        "no secret in it"
    )
    assert "--to" in found["services"]["backup"]["command"][-1]


def test_the_image_is_built_from_what_runs_here_or_from_given_wheels(tmp_path: Path) -> None:
    """Every file that the Dockerfile copies or installs is beside it; no index has to have the package."""
    project = web_project(tmp_path / "p", texts=["one"])
    for name in ("dissensus-9.9-py3-none-any.whl", "dissensus_collect-9.9-py3-none-any.whl"):
        (tmp_path / "wheels" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "wheels" / name).touch()
    for place, packages in (("checkout", None), ("wheels-out", tmp_path / "wheels")):
        write_deployment(project, tmp_path / place, kind="docker", host="study.example.org", packages=packages)
        lines = (tmp_path / place / "Dockerfile").read_text().splitlines()
        assert [line.split()[0] for line in lines if line] == ["FROM", "COPY", "RUN", "ENV", "EXPOSE", "HEALTHCHECK"]
        assert "--no-cache-dir" in lines[2], "nothing in the image that it does not need"
        installed = re.findall(r'"(/packages/[^"\[]+)', lines[2])
        assert len(installed) == 2
        assert all((tmp_path / place / name[1:]).exists() for name in installed)
        assert not list((tmp_path / place).rglob("tests"))
        assert (tmp_path / place / ".dockerignore").read_text() == "*\n!packages\n"
    with pytest.raises(InputError, match="packages="):
        write_deployment(project, tmp_path / "no", kind="docker", host="study.example.org", packages=tmp_path / "p")
    assert not (tmp_path / "no").exists()


def test_what_lies_outside_of_the_folder_is_mounted_too(tmp_path: Path) -> None:
    table = tmp_path / "elsewhere" / "texts.csv"
    table.parent.mkdir()
    table.write_text("item,text\na,one\n")
    project = web_project(tmp_path / "p", texts=["one"])
    path = project.folder / "collect.toml"
    path.write_text(path.read_text().replace('texts = "texts.csv"', f'texts = "{table}"'))
    from dissensus_collect.project.reading import read_project

    found = compose(read_project(project.folder), tmp_path / "out")
    assert f"{table}:{table}:ro" in found["services"]["project"]["volumes"]


def test_the_compose_file_is_one_to_docker_compose(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    compose(web_project(tmp_path / "a project", texts=["one"]), tmp_path / "out")
    command = [docker, "compose", "-f", str(tmp_path / "out" / "compose.yaml"), "config", "--quiet"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"DISSENSUS_PASSWORD": "x", "HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr


def test_the_units_are_units_to_systemd(tmp_path: Path) -> None:
    project = web_project(tmp_path / "My project: 50 % $1", texts=["one"])
    done = write_deployment(project, tmp_path / "out", kind="systemd", host="study.example.org", port=8100)
    units = sorted((tmp_path / "out").glob("*.*er*"))
    assert [each.suffix for each in units] == [".service", ".timer", ".service"]
    server = next(each for each in units if each.name == "dissensus-my-project-50-1.service").read_text()
    assert 'My project: 50 %% $$1"' in server
    assert '"--base-url" "https://study.example.org"' in server
    assert "UMask=0077" in server
    assert "127.0.0.1:8100" in (tmp_path / "out" / "Caddyfile").read_text()
    assert any("daemon" in command or "enable --now" in command for command, _ in done.steps)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze, which checks the units, is not installed")
    checked = subprocess.run([analyze, "verify", *map(str, units)], capture_output=True, text=True)
    ours = [line for line in checked.stderr.splitlines() if "dissensus-" in line and "not executable" not in line]
    assert ours == [], ours


def test_a_deployment_is_refused_where_it_could_not_work(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", texts=["one"])
    for host in ("https://study.example.org", "study.example.org/votes", "me@study.example.org", ""):
        with pytest.raises(InputError):
            write_deployment(project, tmp_path / "out", kind="docker", host=host)
    assert not (tmp_path / "out").exists()
    write_deployment(project, tmp_path / "out", kind="docker", host="study.example.org")
    with pytest.raises(InputError, match="already"):
        write_deployment(project, tmp_path / "out", kind="systemd", host="study.example.org")


def test_a_backup_can_go_to_another_folder_and_old_ones_there_are_dropped(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", texts=["one"])
    with open_database(project) as database:
        made = back_up(database, project, to=tmp_path / "far" / "away")
    assert made.parent == tmp_path / "far" / "away"
    assert file_integrity(made) == "ok"
    assert not (project.folder / "backups").exists()


# The doctor -------------------------------------------------------------------------------------------------------


def told(project: Project, kind: str, **options: Any) -> str:
    return "\n".join(each.sentence for each in examine(project, **options) if each.kind == kind)


def test_a_project_in_good_health_has_nothing_wrong(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one"])
    with served(project) as site:
        Logins(project.folder).set_address(site.url)
        back_up(site.database, project)
        for _ in range(100):  # until it listens
            if "answers" in told(project, "ok"):
                break
            time.sleep(0.05)
        assert told(project, "error") == ""
        fine = told(project, "ok")
        assert "answers" in fine
        assert "sound" in fine
        assert "owner alone" in fine
        assert "copy them to another machine" in told(project, "warning")


def test_the_doctor_finds_what_is_wrong_and_says_what_to_do(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one"])
    assert "collect serve" in told(project, "warning"), "it was never served"
    with served(project) as site:
        site.database.write_now(lambda cursor: log_event(cursor, "paused", now=time.time()))
        back_up(site.database, project)
    assert "does not answer" in told(project, "error", base_url=site.url), "it no longer runs"
    assert "https://study.example.org" in told(project, "error", base_url="study.example.org")
    assert "plain HTTP" in told(project, "error", base_url="http://project.invalid")
    (tmp_path / "collect.sqlite").chmod(0o644)
    assert "chmod 600" in told(project, "error")
    late = time.time() + 5 * 3600
    assert "5 hours old" in told(project, "warning", now=late)
    assert "behind the last event" in told(project, "error", now=time.time() - 86400)
    copy = next((tmp_path / "backups").iterdir())
    copy.write_bytes(copy.read_bytes()[:5000])
    assert "broken" in told(project, "error")
    with sqlite3.connect(tmp_path / "collect.sqlite") as connection:
        connection.execute("DROP TABLE instrument")
    connection.close()
    assert "restore a backup" in told(project, "error")


def test_another_server_at_the_address_is_noticed(tmp_path: Path) -> None:
    import http.server
    import threading

    project = web_project(tmp_path, texts=["one"])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        assert "does not answer as this project" in told(
            project, "error", base_url=f"http://127.0.0.1:{other.server_port}"
        )
        assert "certificate" in told(project, "error", base_url=f"https://127.0.0.1:{other.server_port}")
        other.shutdown()


@pytest.mark.parametrize("given", ["172.18.0.2", "172.18.0.2/16", "172.18.0.0/16", "2001:db8::2", "2001:db8::2/64"])
def test_checked_networks_are_networks_that_the_server_trusts(given: str) -> None:
    from uvicorn.middleware.proxy_headers import _TrustedHosts

    trusted = _TrustedHosts(checked_networks([given]))
    assert given.partition("/")[0] in trusted
    assert "81.2.69.142" not in trusted


def test_health_says_whether_the_proxy_is_trusted(tmp_path: Path) -> None:
    from dissensus_collect.hosting.doctor import _proxy

    with visited(web_project(tmp_path, texts=["one"])) as site:
        person = site.visitor(address="172.18.0.2")
        plain = person.get("/health").json()
        assert plain["proxy"] == "none"
        assert abs(plain["time"] - site.time[0]) < 1
        stranger = person.get("/health", headers={"X-Forwarded-For": "81.2.69.142"}).json()
        known = site.visitor(address="81.2.69.142").get("/health", headers={"X-Forwarded-For": "81.2.69.142"}).json()
    assert (stranger["proxy"], known["proxy"]) == ("untrusted", "trusted")
    assert "--trusted-proxy 172.18.0.2" in next(_proxy(stranger, local=False)).sentence
    assert next(_proxy(known, local=False)).kind == "ok"
    assert next(_proxy(plain, local=False)).kind == "warning"
    assert list(_proxy(plain, local=True)) == []
    assert json.dumps(known)
