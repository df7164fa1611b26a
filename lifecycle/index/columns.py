"""What columns hold and how they are named: text and numbers of any kind, and the metadata that all tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    TypeDecorator,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from lifecycle.index.rows import blob, text


class Name(TypeDecorator[str]):
    """Text from outside (keys, paths, people's words) as bytes: it need be neither UTF-8 nor free of NUL."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        """Encode with surrogateescape."""
        return None if value is None else blob(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        """Decode with surrogateescape."""
        return None if value is None else text(value)


class Wide(TypeDecorator[int]):
    """An integer of any size, as decimal text: a hold until the year 9999 is beyond 64 bits of nanoseconds."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        """Write in decimal."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        """Read decimal."""
        return None if value is None else int(value)


class NoBytes(ColumnElement[bytes]):
    """The empty byte string, written out: a parameter would not match the condition of a partial index."""

    inherit_cache = True
    type = LargeBinary()


@compiles(NoBytes)
def _(element: NoBytes, compiler: SQLCompiler, **_: Any) -> str:
    return "x''"


@compiles(NoBytes, "postgresql")
def _(element: NoBytes, compiler: SQLCompiler, **_: Any) -> str:
    return "''::bytea"


NO_BYTES = NoBytes()


Kind = type[TypeEngine[Any]] | TypeEngine[Any]

Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only for INTEGER

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def required(name: str, kind: Kind, *args: ForeignKey) -> Column[Any]:
    """A column without NULL."""
    return Column(name, kind, *args, nullable=False)
