"""What was announced, what people were asked, what they said, and what may go by that."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NAME = sa.LargeBinary


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("signature", sa.String(64), nullable=False),
        sa.Column("subject", NAME, nullable=False),
        sa.Column("since_ns", sa.BigInteger, nullable=False),
        sa.Column("due_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("signature", name="pk_notices"),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("plan", NAME, nullable=False),
        sa.Column("asked_at_ns", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.Boolean, nullable=False),
        sa.Column("actions", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
    )
    op.create_table(
        "answers",
        sa.Column("id", ID, nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("word", sa.String(8), nullable=False),
        sa.Column("by", NAME, nullable=False),
        sa.Column("typed_by", NAME, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("until_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_answers"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answers_request", "answers", ["request"])
    op.create_table(
        "approved",
        sa.Column("signature", sa.String(64), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("since_ns", sa.BigInteger, nullable=False),
        sa.Column("until_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("signature", name="pk_approved"),
    )


def downgrade() -> None:
    for name in ("approved", "answers", "requests", "notices"):
        op.drop_table(name)
