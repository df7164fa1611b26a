"""In which storage class each copy stands, and what was asked back from archives."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("copies", sa.Column("storage_class", sa.Text))
    op.create_table(
        "restores",
        sa.Column("id", ID, nullable=False),
        sa.Column("store", sa.LargeBinary, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("copy_id", sa.LargeBinary, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("asked_at_ns", sa.BigInteger, nullable=False),
        sa.Column("until_ns", sa.BigInteger, nullable=False),
        sa.Column("speed", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_restores"),
    )
    op.create_index("ix_restores_copy_id", "restores", ["copy_id"])


def downgrade() -> None:
    op.drop_table("restores")
    op.drop_column("copies", "storage_class")
