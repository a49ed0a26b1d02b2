"""Two threads beside the main one; the first needs the second to go on."""

from __future__ import annotations

import threading

asked, answered = threading.Event(), threading.Event()


def answer() -> None:
    asked.wait()
    reply = "yes"
    print("reply", reply)  # answer
    answered.set()


def ask() -> None:
    question = "now?"
    print("question", question)  # ask
    asked.set()
    answered.wait()  # wait
    print("heard")  # heard


def main() -> None:
    threads = [threading.Thread(target=one, name=one.__name__) for one in (answer, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done")  # done


main()
