"""Two threads, each of which waits for the other: a step of one alone never ends."""

import threading

began, seen, passed, done = (threading.Event() for _ in range(4))


def until(event: threading.Event) -> None:
    """Wait so that a debugger can stop it."""
    while not event.is_set():
        event.wait(timeout=0.001)


def first() -> None:
    until(began)
    seen.set()  # first
    until(passed)
    done.set()


def second() -> None:
    began.set()
    until(seen)
    passed.set()
    until(done)


both = [threading.Thread(target=work, name=work.__name__) for work in (first, second)]
for one in both:
    one.start()
for one in both:
    one.join()
