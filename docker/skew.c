/* A wall clock that can be stepped and slewed from outside, for one server process:
 *     cc -shared -fPIC -O2 -nostdlib -o skew.so skew.c
 *     LD_PRELOAD=skew.so QUORLOCK_CLOCK=file valkey-server ...
 * The file holds one line, "OFFSET RATE BASE": the clock is OFFSET microseconds ahead, and runs RATE parts per million
 * fast since BASE (microseconds of the true clock). Without a readable file the clock is the true one. The file is looked
 * at again each millisecond, so that it may be replaced at any time.
 *
 * Needs no C library at all, so that one build serves programs of glibc and of musl. The monotonic clocks are left alone:
 * a step of the wall clock is what a master's expiries suffer from. */
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

extern char **environ __attribute__((weak));

static long call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
#error "no system call for this processor here"
#endif
}

static int64_t offset, rate, base, looked;

static const char *file(void) {
    static const char name[] = "QUORLOCK_CLOCK=";
    for (char **entry = &environ ? environ : 0; entry && *entry; entry++) {
        int i = 0;
        while (name[i] && (*entry)[i] == name[i]) i++;
        if (!name[i]) return *entry + i;
    }
    return 0;
}

/* The next number of the line, or 0 with *at = 0 where there is none. */
static int64_t number(const char **at) {
    const char *s = *at;
    int minus = 0;
    int64_t value = 0;
    if (!s) return 0;
    while (*s == ' ') s++;
    if (*s == '-' || *s == '+') minus = *s++ == '-';
    if (*s < '0' || *s > '9') return *at = 0, 0;
    while (*s >= '0' && *s <= '9') value = value * 10 + (*s++ - '0');
    *at = s;
    return minus ? -value : value;
}

static void look(void) {
    char line[96];
    const char *path = file(), *at = line;
    long fd, length;
    if (!path) return;
    fd = call(SYS_openat, -100 /* AT_FDCWD */, (long)path, 0, 0);
    if (fd < 0) return;
    length = call(SYS_read, fd, (long)line, sizeof line - 1, 0);
    call(SYS_close, fd, 0, 0, 0);
    /* Half a line is being replaced: what was there before stays in force. */
    if (length <= 0 || line[length - 1] != '\n') return;
    line[length] = 0;
    int64_t o = number(&at), r = number(&at), b = number(&at);
    if (at) offset = o, rate = r, base = b;
}

static void now(struct timespec *t) {
    call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)t, 0, 0);
    int64_t ms = (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
    if (ms != looked) looked = ms, look();
    call(SYS_clock_gettime, CLOCK_REALTIME, (long)t, 0, 0);
    int64_t us = (int64_t)t->tv_sec * 1000000 + t->tv_nsec / 1000;
    int64_t ahead = offset + (us - base) * rate / 1000000;
    int64_t ns = t->tv_nsec % 1000;
    us += ahead;
    t->tv_sec = us / 1000000;
    t->tv_nsec = us % 1000000 * 1000 + ns;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    struct timespec t;
    (void)zone;
    now(&t);
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    if (clock == CLOCK_REALTIME) return now(t), 0;
    /* A refusal without errno, which belongs to the C library; no server asks for a clock that does not exist. */
    return call(SYS_clock_gettime, clock, (long)t, 0, 0) < 0 ? -1 : 0;
}

time_t time(time_t *result) {
    struct timespec t;
    now(&t);
    if (result) *result = t.tv_sec;
    return t.tv_sec;
}
