/* Makes the N-th system call of one kind fail, or ends the process there: LD_PRELOAD this, then call fault_arm.
 *
 * A call counts if the file it acts on has `part` in its path. Calls are those of libc: what Python and SQLite use. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static char armed_call[32], armed_part[256];
static int armed_at, armed_error, counted;
static volatile int armed;

/* error 0: the process is killed. at 0: calls are only counted; below 0: all from the -at-th on fail. */
void fault_arm(const char *call, const char *part, int at, int error) {
    snprintf(armed_call, sizeof armed_call, "%s", call);
    snprintf(armed_part, sizeof armed_part, "%s", part);
    armed_at = at, armed_error = error, counted = 0, armed = 1;
}

int fault_disarm(void) {
    armed = 0;
    return counted;
}

static int strikes(const char *call, const char *path) {
    if (!armed || strcmp(call, armed_call) || !path || !strstr(path, armed_part)) return 0;
    ++counted;
    if (armed_at < 0 ? counted < -armed_at : counted != armed_at) return 0;
    if (!armed_error) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = armed_error;
    return 1;
}

static int strikes_fd(const char *call, int fd) {
    char link[64], path[4096];
    if (!armed || strcmp(call, armed_call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return strikes(call, path);
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        return strikes("open", path) ? -1 : real(path, flags, mode); \
    }
OPEN(open) OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        return strikes("open", path) ? -1 : real(folder, path, flags, mode); \
    }
OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return strikes_fd("write", fd) ? -1 : real(fd, data, size);
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t size, off64_t at) { \
        REAL(ssize_t, #name, int, const void *, size_t, off64_t); \
        return strikes_fd("pwrite", fd) ? -1 : real(fd, data, size, at); \
    }
PWRITE(pwrite) PWRITE(pwrite64)

#define OF_FD(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        return strikes_fd(#name, fd) ? -1 : real(fd); \
    }
OF_FD(fsync) OF_FD(fdatasync)

#define TRUNCATE(name) \
    int name(int fd, off64_t size) { \
        REAL(int, #name, int, off64_t); \
        return strikes_fd("ftruncate", fd) ? -1 : real(fd, size); \
    }
TRUNCATE(ftruncate) TRUNCATE(ftruncate64)

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return strikes("rename", to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return strikes("unlink", path) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return strikes("unlink", path) ? -1 : real(folder, path, flags);
}

#define MMAP(name) \
    void *name(void *where, size_t size, int rights, int flags, int fd, off64_t at) { \
        REAL(void *, #name, void *, size_t, int, int, int, off64_t); \
        return fd >= 0 && strikes_fd("mmap", fd) ? MAP_FAILED : real(where, size, rights, flags, fd, at); \
    }
MMAP(mmap) MMAP(mmap64)
