"""How full each store was when it was scanned."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("scan_id", ID, nullable=False, autoincrement=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("free_bytes", sa.BigInteger),
        sa.Column("inodes", sa.BigInteger),
        sa.Column("inodes_free", sa.BigInteger),
        sa.PrimaryKeyConstraint("scan_id", name="pk_usage"),
        sa.ForeignKeyConstraint(["scan_id"], ["scans.id"], name="fk_usage_scan_id_scans"),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_usage_store_id_stores"),
    )
    op.create_index("ix_usage_store_id_at_ns", "usage", ["store_id", "at_ns"])


def downgrade() -> None:
    op.drop_table("usage")
