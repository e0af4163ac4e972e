"""One client of another library, told line by line what to do: see `../mixed.rs`.

    python contender.py LIBRARY URL...

`acquire RESOURCE MILLIS` tries once, `release` gives it back, `crowd RESOURCE FLAG TURNS` takes it so many times, each
time alone in holding the file FLAG. One line answers each.
"""

import os
import sys
import time

import redis


class RedlockPy:
    def __init__(self, masters):
        import redlock

        self.locker = redlock.Redlock(masters, retry_count=1, retry_delay=0.001)

    def acquire(self, resource, millis):
        self.lock = self.locker.lock(resource, millis)
        return bool(self.lock)

    def release(self):
        self.locker.unlock(self.lock)


class Pottery:
    """Puts `redlock:` before the names of resources."""

    def __init__(self, masters):
        import pottery

        self.pottery, self.masters = pottery, set(masters)

    def acquire(self, resource, millis):
        name = resource.removeprefix("redlock:")
        self.lock = self.pottery.Redlock(key=name, masters=self.masters, auto_release_time=millis / 1000)
        return self.lock.acquire(blocking=False)

    def release(self):
        try:
            self.lock.release()
        except self.pottery.ReleaseUnlockedLock:
            # What it says of a lock that expired.
            pass


def crowd(locker, resource, flag, turns):
    done = 0
    while done < turns:
        if locker.acquire(resource, 20_000):
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return "overlap"
            time.sleep(0.003)
            os.unlink(flag)
            locker.release()
            done += 1
        time.sleep(0.01)
    return "done"


def main():
    library, *urls = sys.argv[1:]
    masters = [redis.Redis.from_url(url, socket_timeout=5) for url in urls]
    locker = {"redlock-py": RedlockPy, "pottery": Pottery}[library](masters)
    print("ready", flush=True)
    for line in sys.stdin:
        order, *words = line.split()
        if order == "acquire":
            answer = "won" if locker.acquire(words[0], int(words[1])) else "refused"
        elif order == "release":
            locker.release()
            answer = "released"
        else:
            answer = crowd(locker, words[0], words[1], int(words[2]))
        print(answer, flush=True)


main()
