"""What a request asks for, as a digest: a request id protects one content (AIP-155)."""

import hashlib
from typing import Any


def content_digest(request: Any) -> str:
    """
    A digest of a request message with a ``request_id``, but for that id; the kind of the request is content, too.

    It is stored. Values that must not be, such as secrets, are to be taken out of the content here.
    """
    content = type(request)()
    content.CopyFrom(request)
    content.ClearField("request_id")
    written = f"{content.DESCRIPTOR.full_name}\n".encode() + content.SerializeToString(deterministic=True)
    return "sha256:" + hashlib.sha256(written).hexdigest()
