"""By which rules an act let something go, and what of it was wanted again."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NAME = sa.LargeBinary


def upgrade() -> None:
    op.add_column("journal", sa.Column("causes", sa.Text))
    op.create_table(
        "wanted",
        sa.Column("id", ID, nullable=False),
        sa.Column("sign", sa.String(8), nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("checkpoint", NAME, nullable=False),
        sa.Column("plan", NAME, nullable=False),
        sa.Column("released_at_ns", sa.BigInteger, nullable=False),
        sa.Column("how", sa.String(8), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("policies", sa.Text, nullable=False),
        sa.Column("causes", sa.Text, nullable=False),
        sa.Column("way", sa.String(16), nullable=False),
        sa.Column("by", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("reason", NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_wanted"),
        sa.UniqueConstraint("plan", "checkpoint", "sign", name="uq_wanted_plan_checkpoint_sign"),
    )
    op.create_index("ix_wanted_checkpoint", "wanted", ["checkpoint"])


def downgrade() -> None:
    op.drop_table("wanted")
    op.drop_column("journal", "causes")
