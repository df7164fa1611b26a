"""How many bytes of a store's usage were ours when it was looked at: the rest is other people's."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("usage", sa.Column("ours_bytes", sa.BigInteger))


def downgrade() -> None:
    op.drop_column("usage", "ours_bytes")
