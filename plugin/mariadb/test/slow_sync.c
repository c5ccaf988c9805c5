// Loaded before the server (LD_PRELOAD): a disk on which each sync takes five milliseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

int fdatasync(int file)
{
  int (*next)(int)= (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
  usleep(5000);
  return next(file);
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
  ssize_t (*next)(int, const struct iovec *, int, off_t, int)=
      (ssize_t (*)(int, const struct iovec *, int, off_t, int)) dlsym(RTLD_NEXT, "pwritev2");
  if (flags & RWF_DSYNC)
    usleep(5000);
  return next(file, parts, count, offset, flags);
}
