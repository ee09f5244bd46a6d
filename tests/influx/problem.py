"""Errors of the API: the envelope, its codes, and their statuses."""

STATUS = {
    "invalid": 400,
    "empty value": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not found": 404,
    "method not allowed": 405,
    "conflict": 422,
    "unprocessable entity": 422,
    "too many requests": 429,
    "internal error": 500,
    "unavailable": 503,
}


class Problem(Exception):
    """A request that is answered with the error envelope."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, STATUS[code]


HIDDEN_REASON = "An internal error has occurred - check server logs"
"""The message of a 500 of the older handlers, in place of the reason."""
