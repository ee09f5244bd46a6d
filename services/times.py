"""How long services wait for each other, in one value; an applier's operations have timeouts of their own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """
    All times are in seconds.

    Attributes:
        ready: How long a call waits for a connection, for example to a service that restarts.
        call: Timeout of a call to another service without a shorter deadline of its caller.
        pause: Pause between two attempts to resume a broken stream.
        unreachable: How long a client resumes the streams of a service that does not answer.
        connected: A stream that breaks after a longer time counts as connected until then, because an attempt to
            connect takes less.
        grace: How long a stopping server waits for calls in flight.
        sweep: Interval of the sweeps of the store; the first one runs at the start.
        watch: Longest time between two reads of a watcher of a stack: writes of other processes, and of sweeps, do not
            wake watchers.
    """

    ready: float = 5.0
    call: float = 60.0
    pause: float = 0.5
    unreachable: float = 60.0
    connected: float = 10.0
    grace: float = 30.0
    sweep: float = 60.0
    watch: float = 1.0
