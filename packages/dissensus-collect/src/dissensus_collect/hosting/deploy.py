"""The files that put a project on a machine of its own: with Docker, or with systemd; Caddy gives it TLS in both."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.whole_file import whole_folder
from dissensus_collect.web.security import checked_base_url

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project

SUBNET: Final = "172.30.87.0/24"
"""The network between Caddy and the server, which nobody else is in."""


USER: Final = "dissensus"
"""Who runs the server where the folder of the project belongs to root."""


@dataclass(frozen=True)
class Deployment:
    """What was written.

    Attributes:
        folder: where.
        files: by name, what each is for.
        steps: commands to run, in their order, with what they do.
    """

    folder: Path
    files: dict[str, str]
    steps: tuple[tuple[str, str], ...]


def write_deployment(project: Project, folder: Path, *, kind: str, host: str, port: int = 8000) -> Deployment:
    """Write the files for a deployment into a new folder.

    Args:
        project: the project.
        folder: for the files; new or empty.
        kind: ``docker`` or ``systemd``.
        host: the name under which people reach the machine, such as study.example.org.
        port: on which the server listens; with systemd, several projects on one machine need different ones.
    """
    base_url = checked_base_url(f"https://{host}")
    name = re.sub(r"[^a-z0-9]+", "-", project.folder.resolve().name.lower()).strip("-") or "project"
    write = _docker if kind == "docker" else _systemd
    texts, files, steps = write(project, name=f"dissensus-{name}", base_url=base_url, port=port)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: there is something in it already; choose a folder that is new or empty")
    with whole_folder(folder) as part:
        for file, text in texts.items():
            (part / file).write_text(text, encoding="utf-8")
    return Deployment(folder, files, tuple((command.format(folder=folder), about) for command, about in steps))


_Written = tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]


def _caddyfile(base_url: str, upstream: str) -> str:
    # Caddy gets and renews the certificate by itself, and writes X-Forwarded-For anew, whatever a visitor claims.
    return f"""\
{base_url.removeprefix("https://")} {{
	encode zstd gzip
	reverse_proxy {upstream}
}}
"""


def _outside(project: Project) -> list[Path]:
    """What the project reads that does not lie in its folder."""
    read = [each for each in (project.images, project.table) if each is not None]
    return [each for each in read if not each.is_relative_to(project.folder.resolve())]


def _docker(project: Project, *, name: str, base_url: str, port: int) -> _Written:
    home = project.folder.resolve()
    owner = home.stat()
    # JSON is YAML, and needs no thought about what must be quoted.
    mounts = [f"{home}:/project", *(f"{each}:{each}:ro" for each in _outside(project))]
    serve = ["dissensus", "collect", "serve", "/project", "--host", "0.0.0.0", "--port", str(port)]
    serve += ["--base-url", base_url, "--trusted-proxy", SUBNET]
    user = f"{owner.st_uid or 1000}:{owner.st_gid or 1000}"
    again = "while sleep 86400; do dissensus collect backup /project --to /backups; done"
    compose = f"""\
# docker compose up -d --build
name: {json.dumps(name)}
services:
  project:
    build: "."
    restart: "unless-stopped"
    user: {json.dumps(user)}  # who owns the folder of the project
    command: {json.dumps(serve)}
    environment:
      DISSENSUS_PASSWORD: "${{DISSENSUS_PASSWORD:?write it into .env}}"
    volumes: {json.dumps(mounts, ensure_ascii=False)}
    networks: ["inside"]
    read_only: true
    tmpfs: ["/tmp"]
    cap_drop: ["ALL"]
    security_opt: ["no-new-privileges:true"]
    ulimits: {{"nofile": 4096}}
    stop_grace_period: "30s"
  backup:  # once a day, to another place than the folder of the project: copy ./backups to another machine
    build: "."
    restart: "unless-stopped"
    user: {json.dumps(user)}
    command: {json.dumps(["sh", "-c", again])}
    volumes: {json.dumps([*mounts, "./backups:/backups"], ensure_ascii=False)}
    network_mode: "none"
    depends_on: ["project"]
  caddy:
    image: "caddy:2"
    restart: "unless-stopped"
    ports: ["80:80", "443:443", "443:443/udp"]
    volumes: ["./Caddyfile:/etc/caddy/Caddyfile:ro", "caddy_data:/data", "caddy_config:/config"]
    networks: ["inside"]
    depends_on: ["project"]
networks:
  inside:
    ipam: {{"config": [{{"subnet": "{SUBNET}"}}]}}
volumes: {{"caddy_data": {{}}, "caddy_config": {{}}}}
"""
    check = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/health', timeout=5)"
    dockerfile = f"""\
FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim
RUN pip install --no-cache-dir "dissensus[collect,fast]=={version("dissensus")}"
ENV HOME=/tmp PYTHONUNBUFFERED=1
EXPOSE {port}
HEALTHCHECK --interval=30s --timeout=6s --start-period=30s CMD {json.dumps(["python", "-c", check])}
"""
    texts = {
        "Dockerfile": dockerfile,
        "compose.yaml": compose,
        "Caddyfile": _caddyfile(base_url, f"project:{port}"),
        ".env.example": "DISSENSUS_PASSWORD=\n",
        ".dockerignore": "*\n",
    }
    files = {
        "Dockerfile": "the server",
        "compose.yaml": "the server, a daily backup, and Caddy in front of them",
        "Caddyfile": f"TLS for {base_url}",
        ".env.example": "copy it to .env and write a password into it",
    }
    steps = [
        *([(f"sudo chown -R {user} {home}", "a server should not run as root")] if owner.st_uid == 0 else []),
        (f"cp -r {{folder}} /srv/{name} && cd /srv/{name}", "on the machine that serves, beside the project's folder"),
        ("umask 077; mkdir backups; echo DISSENSUS_PASSWORD=$(openssl rand -base64 15) > .env", "the password"),
        ("docker compose up -d --build", "starts it, now and after every restart of the machine"),
        ("docker compose exec project dissensus collect login /project", "prints a link that logs you in"),
        ("docker compose exec project dissensus collect doctor /project", "checks it"),
    ]
    return texts, files, steps


def _unit_word(text: str | Path) -> str:
    """A word as systemd reads it: in quotation marks, with its own signs doubled."""
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _unit_command(*words: str | Path) -> str:
    return " ".join(map(_unit_word, words))


def _unit_path(path: str | Path) -> str:
    """A path as systemd reads it where it takes no quotation marks."""
    return str(path).replace("%", "%%")


def _systemd(project: Project, *, name: str, base_url: str, port: int) -> _Written:
    home = project.folder.resolve()
    program = Path(shutil.which("dissensus") or Path(sys.executable).with_name("dissensus"))
    saved = Path("/var/backups") / name
    as_root = home.stat().st_uid == 0
    owner = USER if as_root else home.owner()
    shared = f"""\
User={owner}
UMask=0077
NoNewPrivileges=true
PrivateTmp=true
PrivateDevices=true
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=true
ProtectControlGroups=true
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
"""
    serve = (program, "collect", "serve", home, "--port", str(port), "--base-url", base_url)
    server = f"""\
[Unit]
Description=dissensus collect, {_unit_path(project.name.splitlines()[0][:80])}
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={_unit_command(*serve)}
# DISSENSUS_PASSWORD=...; without it, "dissensus collect login" prints links that log in once.
EnvironmentFile=-/etc/{name}.env
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
LimitNOFILE=4096
ReadWritePaths={_unit_word(home)}
{shared}
[Install]
WantedBy=multi-user.target
"""
    backup = f"""\
[Unit]
Description=Backup of {name} to {saved}

[Service]
Type=oneshot
ExecStart={_unit_command(program, "collect", "backup", home, "--to", saved)}
ReadWritePaths={_unit_word(home)} {_unit_word(saved)}
{shared}"""
    timer = f"""\
[Unit]
Description=Backup of {name} every day

[Timer]
OnCalendar=daily
RandomizedDelaySec=15min
Persistent=true

[Install]
WantedBy=timers.target
"""
    texts = {
        f"{name}.service": server,
        f"{name}-backup.service": backup,
        f"{name}-backup.timer": timer,
        "Caddyfile": _caddyfile(base_url, f"127.0.0.1:{port}"),
    }
    files = {
        f"{name}.service": "the server",
        f"{name}-backup.service": f"a backup into {saved}",
        f"{name}-backup.timer": "makes it every day",
        "Caddyfile": f"TLS for {base_url}; add it to /etc/caddy/Caddyfile",
    }
    folder = "{folder}"
    made = f"sudo useradd --system {USER}; sudo chown -R {USER} {home}"
    steps = [
        *([(made, "a server should not run as root")] if as_root else []),
        (f"sudo cp {folder}/{name}* /etc/systemd/system/", "the units"),
        (f"sudo install -d -m 700 -o {owner} {saved}", "where backups go; copy them to another machine"),
        (f"sudo install -m 600 /dev/null /etc/{name}.env", "for the password, and for nobody else to read"),
        (f"echo DISSENSUS_PASSWORD=$(openssl rand -base64 15) | sudo tee /etc/{name}.env", "the password"),
        (f"sudo systemctl enable --now {name}.service {name}-backup.timer", "starts it, now and after every restart"),
        (f"cat {folder}/Caddyfile | sudo tee -a /etc/caddy/Caddyfile && sudo systemctl reload caddy", "TLS"),
        (f"{program} collect doctor {home}", "checks it"),
    ]
    return texts, files, steps
