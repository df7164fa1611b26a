"""The service: the same tick that a CronJob runs, begun by a schedule of our own."""
