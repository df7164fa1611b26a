"""The ticks there were, and the lease that keeps two of them apart."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NAME = sa.LargeBinary


def upgrade() -> None:
    op.create_table(
        "ticks",
        sa.Column("id", ID, nullable=False),
        sa.Column("started_at_ns", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ns", sa.BigInteger),
        sa.Column("host", NAME, nullable=False),
        sa.Column("engine", NAME, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("plan", NAME, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ticks"),
        sqlite_autoincrement=True,
    )
    op.bulk_insert(_leases(), [{"name": "tick", "holder": b"", "fence": 0, "expires_at_ns": 0}])


def downgrade() -> None:
    leases = _leases()
    op.execute(leases.delete().where(leases.c.name == "tick"))
    op.drop_table("ticks")


def _leases() -> sa.TableClause:
    columns = sa.column("name", sa.String), sa.column("holder", NAME), sa.column("fence"), sa.column("expires_at_ns")
    return sa.table("leases", *columns)
