"""What a request asks for, as a digest: a request id protects one content (AIP-155)."""

import hashlib
from typing import Any


def content_digest(request: Any) -> str:
    """
    A digest of a request message with a ``request_id``, but for that id and for what of the answer it wants to see; the
    kind of the request is content, too.

    It is stored, and a value that can be guessed is as good as written in it: of secrets, only the keys count.
    """
    content = type(request)()
    content.CopyFrom(request)
    content.ClearField("request_id")
    if "view" in content.DESCRIPTOR.fields_by_name:
        content.ClearField("view")
    if "secrets" in content.DESCRIPTOR.fields_by_name:
        # The keys first: a map that is written while it is walked leaves some of them out, as chance will have it.
        for key in list(content.secrets):
            content.secrets[key] = ""
    written = f"{content.DESCRIPTOR.full_name}\n".encode() + content.SerializeToString(deterministic=True)
    return "sha256:" + hashlib.sha256(written).hexdigest()
