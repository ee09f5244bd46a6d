"""The gateway as a process: ``python -m services.gateway``."""

from services.gateway.process import run

if __name__ == "__main__":
    run()
