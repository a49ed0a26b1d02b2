/* Loaded before libc (LD_PRELOAD): what a process sends or receives through sockets and pipes is
 * late at random, and comes in pieces. See late_messages.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SMALL 1024 /* bytes; what asks for less reads a wake-up or a word, and gets it whole */
#define REAL(name, ...)                      \
    static ssize_t (*real)(__VA_ARGS__);     \
    if (!real)                               \
        real = dlsym(RTLD_NEXT, name)

static unsigned chance(unsigned below) { /* xorshift, for each thread its own */
    static __thread unsigned long long state;
    if (!state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = (now.tv_nsec * 2654435761ULL ^ (unsigned long long)getpid() << 32 ^
                 (unsigned long long)&state) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % below;
}

static void nap(void) { /* in 8 of 100 calls, most of them shorter than 16 ms */
    int error = errno;
    unsigned which = chance(1000), ms = 0;
    if (which < 3)
        ms = 100 + chance(400);
    else if (which < 15)
        ms = 20 + chance(80);
    else if (which < 80)
        ms = 1 + chance(15);
    if (ms) {
        struct timespec pause = {0, ms * 1000000L};
        nanosleep(&pause, 0);
    }
    errno = error;
}

static size_t piece(size_t size) {
    return size >= SMALL && chance(4) == 0 ? 1 + chance(200) : size;
}

static int is_stream(int fd) {
    int error = errno;
    struct stat what;
    int is = !fstat(fd, &what) && (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode));
    errno = error;
    return is;
}

ssize_t recv(int fd, void *into, size_t size, int flags) {
    REAL("recv", int, void *, size_t, int);
    ssize_t got = real(fd, into, flags & MSG_PEEK ? size : piece(size), flags);
    nap();
    return got;
}

ssize_t read(int fd, void *into, size_t size) {
    REAL("read", int, void *, size_t);
    if (size < SMALL || !is_stream(fd))
        return real(fd, into, size);
    ssize_t got = real(fd, into, piece(size));
    nap();
    return got;
}

ssize_t send(int fd, const void *from, size_t size, int flags) {
    REAL("send", int, const void *, size_t, int);
    nap();
    ssize_t sent = real(fd, from, size, flags);
    nap();
    return sent;
}

ssize_t sendmsg(int fd, const struct msghdr *from, int flags) {
    REAL("sendmsg", int, const struct msghdr *, int);
    nap();
    ssize_t sent = real(fd, from, flags);
    nap();
    return sent;
}

ssize_t write(int fd, const void *from, size_t size) {
    REAL("write", int, const void *, size_t);
    if (size <= 8 || !is_stream(fd)) /* 8: an eventfd's wake-up */
        return real(fd, from, size);
    nap();
    ssize_t wrote = real(fd, from, size);
    nap();
    return wrote;
}
