"""The one error that users are meant to see."""


class HarpError(Exception):
    """An error that the user can mend.

    Its message is one line that says what is wrong, where, and what to do. The command line prints
    it without a traceback and exits with status 2.
    """
