"""What a command says when it cannot do its work."""


class CannotJudgeError(Exception):
    """Nothing could be judged; the message is for people, the exit status 2."""
