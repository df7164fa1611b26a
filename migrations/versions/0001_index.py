"""The index: stores, scans, runs, checkpoints, copies, holds, the journal and its lease."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# A revision says for ever what it said: nothing is imported from the package.
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
BIG = sa.BigInteger
NAME = sa.LargeBinary


def required(name: str, kind: object, *args: object) -> sa.Column:
    return sa.Column(name, kind, *args, nullable=False)


def foreign(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}")


def upgrade() -> None:
    make_small()
    make_checkpoints()
    make_checks()
    make_journal()
    meta = sa.table("meta", sa.column("name"), sa.column("value"))
    op.bulk_insert(meta, [{"name": "serial", "value": 0}, {"name": "next_id", "value": 0}])
    leases = sa.table(
        "leases",
        sa.column("name"),
        sa.column("holder", NAME),
        sa.column("fence"),
        sa.column("expires_at_ns"),
    )
    op.bulk_insert(leases, [{"name": "apply", "holder": b"", "fence": 0, "expires_at_ns": 0}])


def make_small() -> None:
    op.create_table(
        "meta",
        required("name", sa.String(32)),
        required("value", BIG),
        sa.PrimaryKeyConstraint("name", name="pk_meta"),
    )
    op.create_table(
        "leases",
        required("name", sa.String(32)),
        required("holder", NAME),
        required("fence", BIG),
        required("expires_at_ns", BIG),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "stores",
        required("id", ID),
        required("name", NAME),
        required("url", NAME),
        required("identity", NAME),
        required("scanned_at_ns", BIG),
        required("scans", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_stores"),
        sa.UniqueConstraint("name", name="uq_stores_name"),
    )
    op.create_table(
        "scans",
        required("id", ID),
        required("store_id", ID),
        required("started_at_ns", BIG),
        sa.Column("ended_at_ns", BIG),
        sa.Column("complete", sa.Boolean),
        sa.Column("added", BIG),
        sa.Column("changed", BIG),
        sa.Column("missing", BIG),
        sa.Column("unchanged", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_scans"),
        foreign("scans", "store_id", "stores"),
    )
    op.create_index("ix_scans_store_id", "scans", ["store_id"])
    op.create_table(
        "holds",
        required("id", NAME),
        required("target", NAME),
        required("owner", NAME),
        required("reason", NAME),
        required("created_at_ns", sa.String),
        sa.Column("until_ns", sa.String),
        required("inode", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
    )


def make_checkpoints() -> None:
    op.create_table(
        "runs",
        required("id", ID),
        required("store_id", ID),
        required("path", NAME),
        required("present", sa.Boolean),
        required("complete", sa.Boolean),
        required("digest", NAME),
        required("facts", sa.Text),
        sa.Column("memory", sa.LargeBinary),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("store_id", "path", name="uq_runs_store_id_path"),
        foreign("runs", "store_id", "stores"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", ID, nullable=False, autoincrement=False),
        required("run_id", ID),
        required("name", NAME),
        required("layout", NAME),
        required("kind", sa.String(16)),
        sa.Column("step", BIG),
        sa.Column("epoch", sa.Float(53)),
        required("saved_at_ns", BIG),
        sa.Column("metrics", sa.Text),
        sa.Column("tags", sa.Text),
        sa.Column("parts", sa.Text),
        sa.Column("needs", sa.Text),
        sa.Column("odd", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        foreign("checkpoints", "run_id", "runs"),
    )
    op.create_index("ix_checkpoints_run_id", "checkpoints", ["run_id"])
    op.create_table(
        "copies",
        sa.Column("id", ID, nullable=False, autoincrement=False),
        required("checkpoint_id", ID),
        required("store_id", ID),
        required("key", NAME),
        required("state", sa.String(8)),
        required("since_ns", BIG),
        required("scan", BIG),
        required("shape", sa.String(8)),
        required("evidence", sa.String(16)),
        required("changed_at_ns", BIG),
        required("bytes", BIG),
        required("files", BIG),
        required("shared_bytes", BIG),
        required("fingerprint", NAME),
        required("inode", BIG),
        sa.Column("owner", BIG),
        sa.Column("members", sa.Text),
        sa.Column("proof", NAME),
        sa.Column("why", sa.Text),
        sa.Column("flags", sa.Text),
        required("online", sa.Boolean),
        required("home", NAME),
        required("copy_id", NAME),
        sa.PrimaryKeyConstraint("id", name="pk_copies"),
        sa.UniqueConstraint("store_id", "key", name="uq_copies_store_id_key"),
        foreign("copies", "checkpoint_id", "checkpoints"),
        foreign("copies", "store_id", "stores"),
    )
    op.create_index("ix_copies_checkpoint_id", "copies", ["checkpoint_id"])
    op.create_index("ix_copies_home", "copies", ["home"], sqlite_where=sa.text("home <> x''"))
    op.create_index("ix_copies_store_id_state_inode", "copies", ["store_id", "state", "inode"])


def make_checks() -> None:
    op.create_table(
        "checks",
        required("id", ID),
        required("store", NAME),
        required("key", NAME),
        required("copy_id", NAME),
        required("at_ns", BIG),
        required("outcome", sa.String(8)),
        required("note", NAME),
        sa.PrimaryKeyConstraint("id", name="pk_checks"),
    )
    op.create_index("ix_checks_copy_id", "checks", ["copy_id"])


def make_journal() -> None:
    op.create_table(
        "journal",
        required("id", ID),
        required("plan", NAME),
        required("store", NAME),
        required("key", NAME),
        required("trash_id", NAME),
        required("action", sa.Text),
        required("started_at_ns", BIG),
        sa.Column("ended_at_ns", BIG),
        required("outcome", sa.String(8)),
        required("note", NAME),
        required("fence", BIG),
        required("host", NAME),
        required("engine", NAME),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
        sa.UniqueConstraint("plan", "store", "key", "trash_id", name="uq_journal_plan_store_key_trash_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_journal_store_key", "journal", ["store", "key"])
    op.create_index("ix_journal_outcome", "journal", ["outcome"])


def downgrade() -> None:
    for table in ("journal", "checks", "copies", "checkpoints", "runs", "holds", "scans", "stores", "leases", "meta"):
        op.drop_table(table)
