// Preloaded into a program: records, in order, all changes that the program makes to files below a folder, and its
// syncs, so that a test can tell what a power cut at any moment would leave.
//
//   RECORD        the file that the record goes to
//   RECORD_BELOW  the folder, an absolute path
//   NO_LOCKS      if set, flock() always succeeds, as between machines whose file system does not share locks
//   FAIL          "CALL TEXT ERRNO": open, read, fsync or rename (by its new name) fails where a path ends in TEXT
//
// A record is a letter, the number of the file, an offset, and two texts, each after its length (all 64 bits).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;
static const char *below = "";

static char fail_call[16], fail_text[256];
static int fail_errno;

__attribute__((constructor)) static void begin(void) {
    const char *fail = getenv("FAIL");
    if (fail && sscanf(fail, "%15s %255s %d", fail_call, fail_text, &fail_errno) != 3) abort();
    const char *path = getenv("RECORD");
    if (path && getenv("RECORD_BELOW")) {
        below = getenv("RECORD_BELOW");
        record = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
}

static void put(const void *bytes, size_t length) {
    for (const char *at = bytes; length > 0;) {
        long written = syscall(SYS_write, record, at, length);
        if (written <= 0) abort();
        at += written;
        length -= (size_t)written;
    }
}

static void note(char what, uint64_t file, uint64_t offset, const void *first, size_t first_length,
                 const char *second) {
    uint64_t lengths[2] = {first_length, second ? strlen(second) : 0};
    put(&what, 1);
    put(&file, 8);
    put(&offset, 8);
    put(&lengths[0], 8);
    put(first, lengths[0]);
    put(&lengths[1], 8);
    put(second, lengths[1]);
}

// The absolute path, or NULL if it is not below the folder.
static const char *watched(const char *path, char *whole) {
    if (record < 0 || !path) return NULL;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here)) return NULL;
        snprintf(whole, PATH_MAX, "%.2000s/%.2000s", here, path);
    }
    size_t length = strlen(below);
    return strncmp(whole, below, length) == 0 && (whole[length] == '/' || !whole[length]) ? whole : NULL;
}

static const char *path_of(int fd, char *whole) {
    char link[64], found[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = record < 0 ? -1 : readlink(link, found, sizeof found - 1);
    if (length < 0) return NULL;
    found[length] = 0;
    return watched(found, whole);
}

// Whether the call is to fail; sets errno if so.
static int fails(const char *call, const char *path) {
    if (!fail_errno || !path || strcmp(call, fail_call) != 0) return 0;
    size_t length = strlen(path), end = strlen(fail_text);
    if (length < end || strcmp(path + length - end, fail_text) != 0) return 0;
    errno = fail_errno;
    return 1;
}

static int fails_at(const char *call, int fd) {
    char link[64], found[PATH_MAX];
    if (!fail_errno) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    return fails(call, found);
}

static uint64_t number_of(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? (uint64_t)found.st_ino : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
// Runs a call and records it under one lock, so that the record has the order of the calls.
#define TOGETHER(type, call, condition, noted)      \
    pthread_mutex_lock(&lock);                      \
    type result = (call);                           \
    if (condition) {                                \
        int kept = errno;                           \
        noted;                                      \
        errno = kept;                               \
    }                                               \
    pthread_mutex_unlock(&lock);                    \
    return result

static int opened(int (*real)(int, const char *, int, ...), int folder, const char *path, int flags, mode_t mode) {
    if (fails("open", path)) return -1;
    char whole[PATH_MAX];
    const char *at = folder == AT_FDCWD || (path && path[0] == '/') ? watched(path, whole) : NULL;
    struct stat before;
    pthread_mutex_lock(&lock);
    int was_there = at && stat(at, &before) == 0;
    int fd = real(folder, path, flags, mode);
    int kept = errno;
    if (fd >= 0 && at && (flags & O_CREAT) && !was_there) note('C', number_of(fd), 0, at, strlen(at), NULL);
    if (fd >= 0 && at && (flags & O_TRUNC) && was_there) note('T', number_of(fd), 0, NULL, 0, NULL);
    if (fd >= 0 && at && (flags & O_TMPFILE) == O_TMPFILE) note('X', 0, 0, "O_TMPFILE", 9, NULL);
    errno = kept;
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPENED(name, folder, parameters, ...)                       \
    int name parameters {                                           \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode_t mode = mode_of(flags, rest);                         \
        va_end(rest);                                               \
        return opened(REAL(__VA_ARGS__), folder, path, flags, mode); \
    }
OPENED(open, AT_FDCWD, (const char *path, int flags, ...), openat)
OPENED(open64, AT_FDCWD, (const char *path, int flags, ...), openat64)
OPENED(openat, folder, (int folder, const char *path, int flags, ...), openat)
OPENED(openat64, folder, (int folder, const char *path, int flags, ...), openat64)

static void wrote(int fd, uint64_t offset, const void *bytes, size_t length) {
    char whole[PATH_MAX];
    if (record >= 0 && fd == STDOUT_FILENO) note('P', 0, 0, bytes, length, NULL);
    else if (path_of(fd, whole)) note('W', number_of(fd), offset, bytes, length, NULL);
}

static uint64_t place_of(int fd) {
    struct stat found;
    if (record < 0) return 0;
    if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &found) == 0 ? (uint64_t)found.st_size : 0;
    off_t at = lseek(fd, 0, SEEK_CUR);
    return at < 0 ? 0 : (uint64_t)at;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    uint64_t at = 0;
    TOGETHER(ssize_t, (at = place_of(fd), REAL(write)(fd, bytes, length)), result > 0,
             wrote(fd, at, bytes, (size_t)result));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        ssize_t written = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (written < 0) return total ? total : written;
        total += written;
        if ((size_t)written < parts[i].iov_len) break;
    }
    return total;
}

#define PLACED(name)                                                          \
    ssize_t name(int fd, const void *bytes, size_t length, off_t at) {        \
        TOGETHER(ssize_t, REAL(name)(fd, bytes, length, at), result > 0,      \
                 wrote(fd, (uint64_t)at, bytes, (size_t)result));             \
    }
PLACED(pwrite)
PLACED(pwrite64)

#define CUT(name)                                                                                              \
    int name(int fd, off_t length) {                                                                           \
        char whole[PATH_MAX];                                                                                  \
        TOGETHER(int, REAL(name)(fd, length), result == 0 && path_of(fd, whole),                               \
                 note('T', number_of(fd), (uint64_t)length, NULL, 0, NULL));                                   \
    }
CUT(ftruncate)
CUT(ftruncate64)

static void synced(int fd) {
    char whole[PATH_MAX];
    struct stat found;
    const char *path = path_of(fd, whole);
    if (!path || fstat(fd, &found) != 0) return;
    note(S_ISDIR(found.st_mode) ? 'F' : 'S', found.st_ino, 0, path, strlen(path), NULL);
}

int fsync(int fd) {
    if (fails_at("fsync", fd)) return -1;
    TOGETHER(int, REAL(fsync)(fd), result == 0, synced(fd));
}
int fdatasync(int fd) { TOGETHER(int, REAL(fdatasync)(fd), result == 0, synced(fd)); }

int rename(const char *from, const char *to) {
    if (fails("rename", to)) return -1;
    char a[PATH_MAX], b[PATH_MAX];
    const char *old = watched(from, a), *new = watched(to, b);
    TOGETHER(int, REAL(rename)(from, to), result == 0 && (old || new), note('R', 0, 0, a, strlen(a), b));
}

#define NAMED(name, letter, parameters, ...)                                                      \
    int name parameters {                                                                         \
        char whole[PATH_MAX];                                                                     \
        const char *at = watched(path, whole);                                                    \
        TOGETHER(int, REAL(name)(__VA_ARGS__), result == 0 && at, note(letter, 0, 0, at, strlen(at), NULL)); \
    }
NAMED(unlink, 'U', (const char *path), path)
NAMED(rmdir, 'U', (const char *path), path)
NAMED(mkdir, 'M', (const char *path, mode_t mode), path, mode)

ssize_t read(int fd, void *bytes, size_t length) {
    return fails_at("read", fd) ? -1 : REAL(read)(fd, bytes, length);
}

int flock(int fd, int how) { return getenv("NO_LOCKS") ? 0 : REAL(flock)(fd, how); }

// Changes that disk.rs does not replay: the test fails when the program makes one.
#define UNKNOWN(type, name, parameters, ...)                                  \
    type name parameters {                                                    \
        TOGETHER(type, REAL(name)(__VA_ARGS__), record >= 0 && result >= 0,   \
                 note('X', 0, 0, #name, strlen(#name), NULL));                \
    }
UNKNOWN(int, link, (const char *a, const char *b), a, b)
UNKNOWN(int, linkat, (int f, const char *a, int g, const char *b, int how), f, a, g, b, how)
UNKNOWN(int, symlink, (const char *a, const char *b), a, b)
UNKNOWN(int, renameat, (int f, const char *a, int g, const char *b), f, a, g, b)
UNKNOWN(int, renameat2, (int f, const char *a, int g, const char *b, unsigned how), f, a, g, b, how)
UNKNOWN(int, unlinkat, (int f, const char *a, int how), f, a, how)
UNKNOWN(int, truncate, (const char *a, off_t length), a, length)
UNKNOWN(int, fallocate, (int fd, int how, off_t at, off_t length), fd, how, at, length)
UNKNOWN(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), fd, parts, count, at)
UNKNOWN(ssize_t, copy_file_range, (int f, off64_t *a, int g, off64_t *b, size_t length, unsigned how), f, a, g, b,
        length, how)
