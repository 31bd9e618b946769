"""What is wrong with a database, in a sentence for an operator that holds no password and nothing of what is stored."""

from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from chalicelib.db.engine import is_busy

_UNREACHABLE = (
    "08",
    "28",
    "3D",
    "53",
    "57",
)  # SQLSTATE classes: connection, login, no such database, resources, shut down


def sentence_of(error: BaseException) -> str | None:
    """A sentence for what a database or its driver raised; None for anything else."""
    if isinstance(error, TimeoutError | ConnectionError):
        return "the database does not answer (SITEBELL_DATABASE_URL)"
    if isinstance(error, ArgumentError):
        return "SITEBELL_DATABASE_URL: cannot be read; it looks like sqlite:///file or postgresql://user:password@host/name"
    if not isinstance(error, SQLAlchemyError):
        return None
    if isinstance(error, DBAPIError):
        if is_busy(error):
            return "the database is busy: another process holds it; try again"
        state, told = _told(error.orig)
        if state is None or state.startswith(_UNREACHABLE):
            return f"the database cannot be used (SITEBELL_DATABASE_URL): {told}"
        return f"the database refused ({state}); its own log says more"
    return f"the database failed ({type(error).__name__})"


def _told(original: BaseException | None) -> tuple[str | None, str]:
    """The SQLSTATE, where there is one, and what the driver says: pg8000 tells both in a dictionary."""
    detail: object = original.args[0] if original and original.args else None
    if isinstance(detail, dict):
        return str(detail.get("C")), str(detail.get("M"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    name = type(original).__name__
    if name in {"OperationalError", "InterfaceError", "DatabaseError"}:
        return None, " ".join(str(original).split())
    return name, name
