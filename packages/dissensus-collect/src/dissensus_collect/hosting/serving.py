"""A project on the web: the server, and what runs beside it (expiring leases, backups, adaptive rounds)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
import time
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus.parts import installed
from dissensus_collect.results.adaptive import decide, plan_allocation
from dissensus_collect.store.backup import back_up
from dissensus_collect.store.opening import open_database
from dissensus_collect.work.assignment import expire_leases

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import FrameType

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

EXPIRY_SECONDS: Final = 5.0
SWITCH_SECONDS: Final = 0.0005
BACKUP_SECONDS: Final = 3600.0
ROUND_SECONDS: Final = 60.0
STOPPING_SECONDS: Final = 10.0
"""How long a server that is told to stop waits for requests to finish."""
SHORTEST_PASSWORD: Final = 12
"""Characters; and no fewer than five different ones."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where a project can be reached: by everybody who takes part, and by the researcher, once."""

    annotator: str
    researcher: str


def serve_project(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    database_url: str | None = None,
    base_url: str | None = None,
    trusted_proxies: Sequence[str] = (),
    password: str | None = None,
    pace: float = 1.0,
    began: float | None = None,
    rate_limits: bool = True,
    ready: Callable[[Links], None],
) -> None:
    """Serve a project until the process is told to stop; what was acknowledged is on disk, whatever happens.

    Args:
        project: the project.
        host: address to listen on.
        port: to listen on; 0 takes a free one.
        database_url: of a PostgreSQL database; by default collect.sqlite in the project's folder.
        base_url: the address that people use, if there is a proxy in front.
        trusted_proxies: addresses or networks of proxies whose word on visitors' addresses is taken; with a base URL,
            one on this machine is.
        password: the researcher's; without one, only the one-time link logs in.
        pace: how many times faster than real time the clock of the project runs, for simulations.
        began: UNIX seconds at which both clocks showed the same time; by default now.
        rate_limits: whether requests are limited; off when bots share one address.
        ready: called with the links once the server listens.
    """
    require_server()
    import uvicorn

    from dissensus_collect.web.security import checked_base_url
    from dissensus_collect.web.server import create_app, one_time_link
    from dissensus_collect.web.site import ServerSettings

    origin = time.time() if began is None else began

    def clock() -> float:
        return origin + (time.time() - origin) * pace

    base_url = None if base_url is None else checked_base_url(base_url)
    trusted = [*checked_networks(trusted_proxies), *(LOOPBACK[:2] if base_url is not None else ())]
    with contextlib.closing(_listen(host, port)) as listening, open_database(project, database_url) as database:
        address = base_url or _address(host, listening.getsockname()[1])
        settings = ServerSettings(
            clock=clock, rate_limits=rate_limits, base_url=base_url, password=password, database_url=database_url
        )
        app = create_app(project, database, settings=settings)
        app.state.site.logins.set_address(address)
        # One process, always: the writer thread is what makes k exact.
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            # Warnings are about what visitors send, and anybody could fill the disk with them.
            log_level="error",
            access_log=False,
            server_header=False,
            # The address of a visitor is taken from a proxy's headers only where there is a proxy.
            proxy_headers=bool(trusted),
            forwarded_allow_ips=trusted,
            timeout_graceful_shutdown=round(STOPPING_SECONDS),
        )
        server = uvicorn.Server(config)

        async def serve() -> None:
            chores: list[tuple[float, Callable[[], Awaitable[Any]]]] = [
                (EXPIRY_SECONDS, lambda: database.write(lambda cursor: expire_leases(cursor, now=clock())))
            ]
            if database.path is not None:
                chores.append((BACKUP_SECONDS, lambda: asyncio.to_thread(back_up, database, project)))
            if project.adaptive.on:
                chores.append((ROUND_SECONDS, lambda: _round(project, database, clock)))
            beside = [asyncio.create_task(_every(seconds / pace, chore)) for seconds, chore in chores]
            ready(Links(annotator=f"{address}/", researcher=f"{address}{one_time_link(app)}"))
            try:
                await server.serve(sockets=[listening])
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)

        # What is loaded by now stays: searching it for garbage again and again would cost a tenth of the time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        # SQLite releases the interpreter with every statement; the writer must not wait 5 ms to get it back.
        sys.setswitchinterval(SWITCH_SECONDS)

        # uvicorn stops on these signals and raises them again when it has stopped; by then there is nothing left to do.
        # A signal that comes before uvicorn listens for it must not be lost.
        def stop(number: int, frame: FrameType | None) -> None:
            server.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            # Not asyncio.run: it would leave uvloop aside where that is installed.
            with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
                runner.run(serve())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def checked_networks(addresses: Sequence[str]) -> list[str]:
    """Return addresses of proxies as networks. Raise `InputError` if a text is neither an address nor a network."""
    networks = []
    for address in addresses:
        try:
            # uvicorn would trust no address of a network with host bits, such as 172.18.0.2/16: clear these bits.
            networks.append(str(ip_network(address, strict=False)))
        except ValueError:
            raise InputError(
                f"trusted proxy '{address}': not an address or a network; write it like 172.18.0.2 or 172.16.0.0/12"
            ) from None
    return networks


def serving_warnings(*, host: str, base_url: str | None, password: str | None) -> list[str]:
    """What is risky about how a project is to be served, as sentences."""
    warnings = []
    encrypted = base_url is not None and base_url.startswith("https://")
    if not encrypted and (host not in LOOPBACK or base_url is not None):
        warnings.append(
            "people connect by plain HTTP, so that anybody on the way can read answers, cookies and the password; put "
            "a proxy with TLS in front (see docs/collect.md) and name it with --base-url https://..."
        )
    elif encrypted and host not in LOOPBACK:
        warnings.append(
            f"it listens on {host}, so that everybody who can reach this machine can go round the proxy and its TLS; "
            "use --host 127.0.0.1, or let a firewall close the port"
        )
    if password is not None and (len(password) < SHORTEST_PASSWORD or len(set(password)) < 5):
        warnings.append(
            f"the researcher's password is easy to guess; take {SHORTEST_PASSWORD} characters or more, such as those "
            "of 'openssl rand -base64 15'"
        )
    return warnings


def require_server() -> None:
    """Refuse, naming the remedy, if the packages of the server are not installed."""
    for name in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        installed(name, "collect", wanted_by="the annotation server")


def _address(host: str, port: int) -> str:
    """The address of a server that listens on a host; the machine's name, if it listens on all of them."""
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        listening = socket.socket(socket.getaddrinfo(host, port)[0][0], socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen(2048)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InputError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}); choose another host= or port="
        ) from error
    return listening


async def _every(seconds: float, work: Callable[[], Awaitable[Any]]) -> None:
    """Do something again and again; a failure is reported and does not end it."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception as error:
            sys.stderr.write(f"dissensus collect: {type(error).__name__}: {error}\n")


async def _round(project: Project, database: Database, clock: Callable[[], float]) -> None:
    # Looking at all votes takes long and is therefore a read, so that nobody's answer waits for it.
    if decisions := await database.read(lambda cursor: plan_allocation(cursor, project)):
        await database.write(lambda cursor: decide(cursor, decisions, now=clock()))
