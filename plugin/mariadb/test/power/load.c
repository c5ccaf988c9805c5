// Clients that insert rows, alone and in transactions that also count, until they are ended or the server is. The ids of
// each transaction are in a file of the client's once they were acknowledged, and not before.
//   load SOCKET DATABASE CLIENTS ROUND PREFIX   c has a row for each client, 0 to CLIENTS - 1; the files are PREFIX.CLIENT
#include <fcntl.h>
#include <mysql.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **arguments;

static int run(MYSQL *server, const char *text)
{
  if (!mysql_real_query(server, text, strlen(text)))
    return 0;
  fprintf(stderr, "load: %s: %s\n", text, mysql_error(server));
  return 1;
}

// Each number once, and all over the table.
static uint64_t scattered(uint64_t number) { return number * 0x5851f42d4c957f2du & 0xffffffffffff; }

static void *work(void *argument)
{
  int client= (int) (intptr_t) argument, wrong= 0;
  unsigned seed= (unsigned) (client + 1000 * atoi(arguments[4]));
  uint64_t number= ((uint64_t) atoi(arguments[4]) * 64 + (uint64_t) client) << 24;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", arguments[5], client);
  int file= open(path, O_CREAT | O_APPEND | O_WRONLY, 0600);
  MYSQL *server= mysql_init(NULL);
  if (file < 0 || !mysql_real_connect(server, NULL, "root", NULL, arguments[2], 0, arguments[1], 0))
  {
    fprintf(stderr, "load: %s\n", mysql_error(server));
    return server;
  }
  while (!wrong)
  {
    char text[400], ids[200];
    int rows= rand_r(&seed) % 3 ? 1 : 2 + rand_r(&seed) % 2, length= 0;
    if (rows > 1)
      wrong|= run(server, "BEGIN");
    for (int i= 0; i < rows; i++)
    {
      uint64_t id= scattered(++number);
      snprintf(text, sizeof text, "INSERT INTO t VALUES (%lu, REPEAT('%c', %d))", id, 'a' + client, rand_r(&seed) % 100);
      wrong|= run(server, text);
      length+= snprintf(ids + length, sizeof ids - (size_t) length, "%lu\n", id);
    }
    if (rows > 1)
    {
      snprintf(text, sizeof text, "UPDATE c SET n = n + 1 WHERE id = %d", client);
      wrong|= run(server, text);
      wrong|= run(server, "COMMIT");
    }
    if (!wrong && write(file, ids, (size_t) length) != length)
      wrong= 1;
  }
  return server;
}

int main(int argc, char **argv)
{
  if (argc != 6)
    return 2;
  arguments= argv;
  mysql_library_init(0, NULL, NULL);
  int clients= atoi(argv[3]);
  pthread_t threads[64];
  for (int i= 0; i < clients && i < 64; i++)
    pthread_create(&threads[i], NULL, work, (void *) (intptr_t) i);
  for (int i= 0; i < clients && i < 64; i++)
    pthread_join(threads[i], NULL);
  return 1;
}
