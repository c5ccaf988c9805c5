// Loaded before the server (LD_PRELOAD): while the file SYNC.hold is there, durable writes wait, and SYNC.here says that
// one does; while SYNC.fail is there they fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int there(const char *what)
{
  char path[4096];
  snprintf(path, sizeof path, "%s.%s", getenv("SYNC"), what);
  return access(path, F_OK) == 0;
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
  ssize_t (*next)(int, const struct iovec *, int, off_t, int)=
      (ssize_t (*)(int, const struct iovec *, int, off_t, int)) dlsym(RTLD_NEXT, "pwritev2");
  char here[4096];
  if (flags & RWF_DSYNC && there("hold"))
  {
    snprintf(here, sizeof here, "%s.here", getenv("SYNC"));
    close(open(here, O_CREAT | O_WRONLY, 0600));
    while (there("hold"))
      usleep(10000);
    unlink(here);
  }
  if (flags & RWF_DSYNC && there("fail"))
  {
    errno= EIO;
    return -1;
  }
  return next(file, parts, count, offset, flags);
}
