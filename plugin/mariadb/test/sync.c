// Loaded before the server (LD_PRELOAD): while the file SYNC.hold is there, durable writes and syncs of the binary log wait,
// and SYNC.here says that one does; while SYNC.fail is there they fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int there(const char *what)
{
  char path[4096];
  snprintf(path, sizeof path, "%s.%s", getenv("SYNC"), what);
  return access(path, F_OK) == 0;
}

// 0, or the error.
static int stopped(void)
{
  char here[4096];
  if (there("hold"))
  {
    snprintf(here, sizeof here, "%s.here", getenv("SYNC"));
    close(open(here, O_CREAT | O_WRONLY, 0600));
    while (there("hold"))
      usleep(10000);
    unlink(here);
  }
  return there("fail") ? EIO : 0;
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
  ssize_t (*next)(int, const struct iovec *, int, off_t, int)=
      (ssize_t (*)(int, const struct iovec *, int, off_t, int)) dlsym(RTLD_NEXT, "pwritev2");
  if (flags & RWF_DSYNC && (errno= stopped()))
    return -1;
  return next(file, parts, count, offset, flags);
}

int fdatasync(int file)
{
  int (*next)(int)= (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length= readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length]= 0;
  if (strstr(path, "/binlog.0") && (errno= stopped()))
    return -1;
  return next(file);
}
