"""Certificates for stand-ins that speak TLS."""

import ssl
import subprocess
from pathlib import Path


def own_certificate(folder: Path) -> Path:
    """A self-signed certificate for this machine, with its key in the same file, made by the program ``openssl``."""
    file, key = folder / "certificate.pem", folder / "key.pem"
    how = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    named = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    subprocess.run(["openssl", *how.split(), *named], check=True, capture_output=True)
    with file.open("a") as both:
        both.write(key.read_text())
    return file


def served_with(certificate: Path) -> ssl.SSLContext:
    """The TLS context of a server with *certificate*."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context
