/* Fails the n-th system call that touches a folder's files, or standard output and error.

   Loaded before the C library (LD_PRELOAD). The orders come in a small shared file, so that
   processes that are started by the one under test count along:

     long turn      which call fails (1: the first; 0: none)
     long error     its errno
     long lasting   whether all calls from then on fail
     long calls     how many there were
     long failed    how many of them failed
     long streams   whether writes to standard output and error count
     char folder[]  only calls on names below it, or on files opened below it, count
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct orders {
    long turn, error, lasting, calls, failed, streams;
    char folder[PATH_MAX];
};

static struct orders *orders;

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("FAULTS");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED) orders = found;
}

static int below(const char *path) {
    size_t length = strlen(orders->folder);
    return !strncmp(path, orders->folder, length) && (path[length] == '/' || !path[length]);
}

static int named(int at, const char *path) {
    char whole[2 * PATH_MAX];
    if (!orders || !orders->turn || !path) return 0;
    if (path[0] == '/') return below(path);
    if (at != AT_FDCWD) return 0; /* Nothing here opens relative to a folder's descriptor. */
    if (!getcwd(whole, PATH_MAX)) return 0;
    strcat(whole, "/");
    strncat(whole, path, PATH_MAX - 1);
    return below(whole);
}

static int opened(int file) {
    char link[64], path[PATH_MAX];
    if (!orders || !orders->turn) return 0;
    if (file == 1 || file == 2) return orders->streams != 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* Counts a call; returns whether it fails. */
static int fails(int counts) {
    if (!counts) return 0;
    long call = __sync_add_and_fetch(&orders->calls, 1);
    if (call != orders->turn && !(orders->lasting && call > orders->turn)) return 0;
    __sync_add_and_fetch(&orders->failed, 1);
    errno = (int)orders->error;
    return 1;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPEN(name)                                                     \
    int name(const char *path, int flags, ...) {                       \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;      \
        va_end(rest);                                                  \
        REAL(name);                                                    \
        if ((flags & WRITES) && fails(named(AT_FDCWD, path))) return -1; \
        return real(path, flags, mode);                                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                   \
    int name(int at, const char *path, int flags, ...) {               \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;      \
        va_end(rest);                                                  \
        REAL(name);                                                    \
        if ((flags & WRITES) && fails(named(at, path))) return -1;     \
        return real(at, path, flags, mode);                            \
    }
OPENAT(openat)
OPENAT(openat64)

#define CALL(type, name, parameters, counts, arguments) \
    type name parameters {                              \
        REAL(name);                                     \
        if (fails(counts)) return -1;                   \
        return real arguments;                          \
    }
CALL(ssize_t, write, (int f, const void *b, size_t n), opened(f), (f, b, n))
CALL(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), opened(f), (f, b, n, o))
CALL(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), opened(f), (f, b, n, o))
CALL(ssize_t, writev, (int f, const struct iovec *v, int n), opened(f), (f, v, n))
int close(int file) {
    REAL(close);
    int counts = opened(file) && file > 2 && (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int status = real(file); /* It is closed even where that fails. */
    return fails(counts) ? -1 : status;
}
CALL(int, fsync, (int f), opened(f), (f))
CALL(int, fdatasync, (int f), opened(f), (f))
CALL(int, ftruncate, (int f, off_t n), opened(f), (f, n))
CALL(int, ftruncate64, (int f, off64_t n), opened(f), (f, n))
CALL(int, fchmod, (int f, mode_t m), opened(f), (f, m))
CALL(int, chmod, (const char *p, mode_t m), named(AT_FDCWD, p), (p, m))
CALL(int, fchmodat, (int a, const char *p, mode_t m, int g), named(a, p), (a, p, m, g))
CALL(int, link, (const char *p, const char *q), named(AT_FDCWD, q), (p, q))
CALL(int, linkat, (int a, const char *p, int b, const char *q, int g), named(b, q), (a, p, b, q, g))
CALL(int, rename, (const char *p, const char *q), named(AT_FDCWD, q), (p, q))
CALL(int, renameat, (int a, const char *p, int b, const char *q), named(b, q), (a, p, b, q))
CALL(int, unlink, (const char *p), named(AT_FDCWD, p), (p))
CALL(int, unlinkat, (int a, const char *p, int g), named(a, p), (a, p, g))
CALL(int, rmdir, (const char *p), named(AT_FDCWD, p), (p))
CALL(int, mkdir, (const char *p, mode_t m), named(AT_FDCWD, p), (p, m))
CALL(int, mkdirat, (int a, const char *p, mode_t m), named(a, p), (a, p, m))
CALL(int, symlink, (const char *p, const char *q), named(AT_FDCWD, q), (p, q))
