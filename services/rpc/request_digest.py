"""The content of a request as a digest: a request id belongs to one content (AIP-155)."""

import hashlib
from typing import Any


def content_digest(request: Any) -> str:
    """
    A digest of a request message with a ``request_id``, without that id and the requested views; the type of the
    request is part of the content.

    The digest is stored, and could be used to guess a secret value. So only the keys of secrets are part of it.
    """
    content = type(request)()
    content.CopyFrom(request)
    content.ClearField("request_id")
    if "view" in content.DESCRIPTOR.fields_by_name:
        content.ClearField("view")
    if "secrets" in content.DESCRIPTOR.fields_by_name:
        # The keys are listed first: writing to a map while iterating over it skips some of its entries.
        for key in list(content.secrets):
            content.secrets[key] = ""
    written = f"{content.DESCRIPTOR.full_name}\n".encode() + content.SerializeToString(deterministic=True)
    return "sha256:" + hashlib.sha256(written).hexdigest()
