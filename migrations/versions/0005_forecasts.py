"""What was forecast of each store, to be held to what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "forecasts",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("made_at_ns", sa.BigInteger, nullable=False),
        sa.Column("every_s", sa.BigInteger, nullable=False),
        sa.Column("days", sa.BigInteger, nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("low_bytes", sa.BigInteger, nullable=False),
        sa.Column("middle_bytes", sa.BigInteger, nullable=False),
        sa.Column("high_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_forecasts"),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_forecasts_store_id_stores"),
    )
    op.create_index("ix_forecasts_store_id_made_at_ns", "forecasts", ["store_id", "made_at_ns"])


def downgrade() -> None:
    op.drop_table("forecasts")
