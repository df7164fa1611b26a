"""Runs revisions on the connection that the caller hands over, inside the caller's transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
context.run_migrations()
