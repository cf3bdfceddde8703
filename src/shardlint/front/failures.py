"""What ends a run with exit code 2."""


class CannotRun(Exception):
    """The job cannot be done (usage, a missing path, bad settings); its text is the one line that says why."""
