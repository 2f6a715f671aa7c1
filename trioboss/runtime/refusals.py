"""What a refused statement, or an answer that cannot be read, means to an actor."""

from trioboss.errors import DatabaseUnavailable, ServerDown, StatementFailed, TriobossError
from trioboss.postgres.errors import is_database_error, is_server_down

__all__ = ["refusals_as_unavailable"]


class refusals_as_unavailable:
    """A block in which a statement that was refused, or an answer that cannot be read, counts as no answer.

    Both come from rows: no actor may end, or count as crashed, because of what somebody has written into a table. It
    reports the failure and tries again, less and less often.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if is_server_down(error):
            raise ServerDown(str(error).partition("\n")[0]) from error
        if isinstance(error, StatementFailed) or is_database_error(error):
            raise DatabaseUnavailable(str(error)) from error
        if isinstance(error, Exception) and not isinstance(error, TriobossError):
            raise DatabaseUnavailable(f"an answer cannot be read: {type(error).__name__}: {error}") from error
