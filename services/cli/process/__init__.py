"""Connections to services, and the processes of services that a command starts."""
