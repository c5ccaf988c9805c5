// Disks that lose, tear and reorder what was not flushed, in memory: a FUSE file system with a file for each,
// `1`, `2` and so on, on which loop devices are put. The loop driver writes through, and makes an fsync of a flush.
//   disk DIRECTORY MIB...        mounts it there, and stays until it is unmounted; then says what went on
// Commands come through the file `control`, one line a write(2), which is answered when it is done:
//   images PREFIX SEED COUNT [P] the power fails: PREFIX.I.D, with I from 1 to COUNT, is what disk D may hold after that, all
//                                of the same instant, and PREFIX.said has a line for each I: P, pages kept, pages there were.
//                                Each page that was written and not flushed is kept with the probability P, in 1/8 (drawn, if
//                                not given)
//   at N                         the next images wait for the Nth event: a write that has come and is not answered, or a flush
//                                that has come and did nothing yet
//   slow US                      how long a flush takes; nothing is durable before its end
//   behind N                     lies: a flush makes durable what was there at the Nth flush before it
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// What is kept or lost as a whole: drives with sectors of 4 KiB do not tear these.
#define PAGE 4096
#define BEHIND 10000
#define DISKS 9

struct write
{
  struct write *next;
  off_t offset;
  size_t length;
  char data[];
};

struct disk
{
  off_t size;
  // With all writes, and with those that were flushed.
  char *now, *durable;
  // Pages that are not zeros in one of them.
  unsigned char *touched;
  // Not flushed, oldest first.
  struct write *first, **last;
  // Since the beginning, as numbers of writes: how many there were, and how many are durable.
  uint64_t written, flushed, longest;
  // How many writes there were at the latest flushes.
  uint64_t flushes, at_flush[BEHIND];
};

static pthread_mutex_t mutex= PTHREAD_MUTEX_INITIALIZER;
// Images were made.
static pthread_cond_t made= PTHREAD_COND_INITIALIZER;
static struct disk disks[DISKS];
static int disk_count;
static uint64_t image_count, slow, behind;
// The images that are waited for, and how many events there are until then.
static struct
{
  char prefix[3000];
  uint64_t seed, events;
  int count, eighths, wrong;
} wanted;

// splitmix64: the same seed, the same images.
static uint64_t draw(uint64_t *seed)
{
  uint64_t z= *seed+= 0x9e3779b97f4a7c15u;
  z= (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z= (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int put(int file, const char *data, size_t length, off_t offset)
{
  while (length)
  {
    ssize_t done= pwrite(file, data, length, offset);
    if (done <= 0)
      return -EIO;
    data+= done;
    length-= (size_t) done;
    offset+= done;
  }
  return 0;
}

static int make_image(const struct disk *disk, const char *path, uint64_t *seed, int eighths, uint64_t *kept, uint64_t *pages)
{
  int wrong= 0, file= open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (file < 0)
    return -errno;
  if (ftruncate(file, disk->size))
    wrong= -errno;
  for (off_t from= 0, to; from < disk->size && !wrong; from= to)
  {
    for (to= from; to < disk->size && disk->touched[to / PAGE]; to+= PAGE)
      ;
    wrong= put(file, disk->durable + from, (size_t) (to - from), from);
    if (to == from)
      to+= PAGE;
  }
  for (struct write *write= disk->first; write && !wrong; write= write->next)
    for (size_t from= 0, part; from < write->length && !wrong; from+= part)
    {
      off_t offset= write->offset + (off_t) from;
      part= PAGE - (size_t) (offset % PAGE);
      if (part > write->length - from)
        part= write->length - from;
      ++*pages;
      if ((int) (draw(seed) % 8) >= eighths)
        continue;
      ++*kept;
      wrong= put(file, write->data + from, part, offset);
    }
  close(file);
  return wrong;
}

static int make_images(void)
{
  char path[4096];
  snprintf(path, sizeof path, "%s.said", wanted.prefix);
  FILE *said= fopen(path, "w");
  if (!said)
    return -errno;
  int wrong= 0;
  for (int i= 1; i <= wanted.count && !wrong; i++)
  {
    uint64_t seed= wanted.seed + (uint64_t) i, kept= 0, pages= 0;
    int eighths= wanted.eighths;
    if (eighths < 0)
      eighths= (const int[]){0, 1, 3, 4, 4, 5, 7, 8}[draw(&seed) % 8];
    for (int d= 0; d < disk_count && !wrong; d++)
    {
      snprintf(path, sizeof path, "%s.%d.%d", wanted.prefix, i, d + 1);
      wrong= make_image(&disks[d], path, &seed, eighths, &kept, &pages);
    }
    fprintf(said, "%d/8 %lu %lu\n", eighths, kept, pages);
    image_count++;
  }
  fclose(said);
  return wrong;
}

// With the mutex held.
static void event(void)
{
  if (!wanted.count || !wanted.events || --wanted.events)
    return;
  wanted.wrong= make_images();
  wanted.count= 0;
  pthread_cond_signal(&made);
}

static int order_images(void)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec+= 10;
  if (!wanted.events)
  {
    wanted.wrong= make_images();
    wanted.count= 0;
  }
  while (wanted.count)
    if (pthread_cond_timedwait(&made, &mutex, &until) && wanted.count)
    {
      wanted.count= 0;
      wanted.wrong= -ETIMEDOUT;
    }
  wanted.events= 0;
  return wanted.wrong;
}

static int obey(const char *line)
{
  uint64_t number;
  int wrong= 0;
  pthread_mutex_lock(&mutex);
  wanted.eighths= -1;
  if (sscanf(line, "images %2999s %lu %d %d", wanted.prefix, &wanted.seed, &wanted.count, &wanted.eighths) >= 3)
    wrong= order_images();
  else if (sscanf(line, "at %lu", &number) == 1)
    wanted.events= number;
  else if (sscanf(line, "slow %lu", &number) == 1)
    slow= number;
  else if (sscanf(line, "behind %lu", &number) == 1 && number < BEHIND)
    behind= number;
  else
    wrong= -EINVAL;
  pthread_mutex_unlock(&mutex);
  return wrong;
}

static struct disk *disk_of(const char *path)
{
  int number= path[1] - '1';
  return path[1] && !path[2] && number >= 0 && number < disk_count ? &disks[number] : NULL;
}
static int is_control(const char *path) { return !strcmp(path, "/control"); }

static int disk_getattr(const char *path, struct stat *stat, struct fuse_file_info *info)
{
  (void) info;
  struct disk *disk= disk_of(path);
  memset(stat, 0, sizeof *stat);
  stat->st_nlink= 1;
  stat->st_mode= strcmp(path, "/") ? S_IFREG | 0600 : S_IFDIR | 0700;
  stat->st_size= disk ? disk->size : 0;
  return !strcmp(path, "/") || disk || is_control(path) ? 0 : -ENOENT;
}

static int disk_open(const char *path, struct fuse_file_info *info)
{
  // The kernel keeps nothing of it: a write is here before the loop device says that it is done.
  info->direct_io= 1;
  return disk_of(path) || is_control(path) ? 0 : -ENOENT;
}

// Of the control file, by the shell.
static int disk_truncate(const char *path, off_t length, struct fuse_file_info *info)
{
  (void) length, (void) info;
  return is_control(path) ? 0 : -EPERM;
}

static int disk_read(const char *path, char *to, size_t length, off_t offset, struct fuse_file_info *info)
{
  (void) info;
  struct disk *disk= disk_of(path);
  if (!disk || offset >= disk->size)
    return 0;
  if ((off_t) length > disk->size - offset)
    length= (size_t) (disk->size - offset);
  pthread_mutex_lock(&mutex);
  memcpy(to, disk->now + offset, length);
  pthread_mutex_unlock(&mutex);
  return (int) length;
}

static int disk_write(const char *path, const char *from, size_t length, off_t offset, struct fuse_file_info *info)
{
  (void) info;
  struct disk *disk= disk_of(path);
  if (!disk)
  {
    char line[4096];
    snprintf(line, sizeof line, "%.*s", (int) length, from);
    int wrong= obey(line);
    return wrong ? wrong : (int) length;
  }
  if (!length)
    return 0;
  if (offset < 0 || offset > disk->size || (off_t) length > disk->size - offset)
    return -ENOSPC;
  // The data itself: the same place may be written again.
  struct write *write= malloc(sizeof *write + length);
  if (!write)
    return -ENOMEM;
  write->next= NULL;
  write->offset= offset;
  write->length= length;
  memcpy(write->data, from, length);
  pthread_mutex_lock(&mutex);
  memcpy(disk->now + offset, from, length);
  for (off_t page= offset / PAGE; page <= (offset + (off_t) length - 1) / PAGE; page++)
    disk->touched[page]= 1;
  *disk->last= write;
  disk->last= &write->next;
  disk->written++;
  if (disk->written - disk->flushed > disk->longest)
    disk->longest= disk->written - disk->flushed;
  event();
  pthread_mutex_unlock(&mutex);
  return (int) length;
}

static int disk_fsync(const char *path, int is_data_only, struct fuse_file_info *info)
{
  (void) is_data_only, (void) info;
  struct disk *disk= disk_of(path);
  if (!disk)
    return 0;
  pthread_mutex_lock(&mutex);
  // Those that were done when the flush came.
  disk->at_flush[disk->flushes % BEHIND]= disk->written;
  uint64_t to= disk->flushes < behind ? 0 : disk->at_flush[(disk->flushes - behind) % BEHIND];
  disk->flushes++;
  if (to > disk->flushed)
  {
    event();
    if (slow)
    {
      pthread_mutex_unlock(&mutex);
      usleep((useconds_t) slow);
      pthread_mutex_lock(&mutex);
    }
  }
  while (disk->flushed < to)
  {
    struct write *write= disk->first;
    memcpy(disk->durable + write->offset, write->data, write->length);
    disk->first= write->next;
    if (!disk->first)
      disk->last= &disk->first;
    free(write);
    disk->flushed++;
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}

static void disk_end(void *nothing)
{
  (void) nothing;
  for (int d= 0; d < disk_count; d++)
    printf("disk %d: %lu writes, %lu flushes, at most %lu writes not flushed\n", d + 1, disks[d].written, disks[d].flushes,
           disks[d].longest);
  fflush(stdout);
}

static const struct fuse_operations operations= {
    .getattr= disk_getattr,
    .open= disk_open,
    .truncate= disk_truncate,
    .read= disk_read,
    .write= disk_write,
    .fsync= disk_fsync,
    .destroy= disk_end,
    // No fallocate: the loop device then has neither discards nor zeros that are not written.
};

static void *zeros(off_t size)
{
  void *memory= mmap(NULL, (size_t) size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED)
    return memory;
  perror("disk");
  exit(1);
}

int main(int argc, char **argv)
{
  disk_count= argc - 2;
  if (disk_count < 1 || disk_count > DISKS)
  {
    fprintf(stderr, "disk DIRECTORY MIB...\n");
    return 2;
  }
  for (int d= 0; d < disk_count; d++)
  {
    disks[d].size= atol(argv[d + 2]) << 20;
    disks[d].now= zeros(disks[d].size);
    disks[d].durable= zeros(disks[d].size);
    disks[d].touched= zeros(disks[d].size / PAGE);
    disks[d].last= &disks[d].first;
  }
  char *arguments[]= {argv[0], "-f", argv[1], NULL};
  return fuse_main(3, arguments, &operations, NULL);
}
