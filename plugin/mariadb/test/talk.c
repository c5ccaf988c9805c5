// A client that says much before it listens: statements one behind the other, and then their answers. More answers than
// a socket holds.
//   talk SOCKET DATABASE FIRST NUMBER [PAUSE]   inserts FIRST to FIRST + NUMBER - 1 into t; PAUSE: us between them, or 1000
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  if (argc != 5 && argc != 6)
    return 2;
  MYSQL *server= mysql_init(NULL);
  int first= atoi(argv[3]), number= atoi(argv[4]), pause= argc == 6 ? atoi(argv[5]) : 1000, wrong= 0;
  if (!mysql_real_connect(server, NULL, "root", NULL, argv[2], 0, argv[1], 0))
  {
    fprintf(stderr, "talk: %s\n", mysql_error(server));
    return 1;
  }
  for (int i= 0; i < number; i++)
  {
    char text[100];
    int length= snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", first + i);
    if (mysql_send_query(server, text, (unsigned long) length))
    {
      fprintf(stderr, "talk: statement %d: %s\n", i, mysql_error(server));
      return 1;
    }
    // What was said is heard meanwhile: a socket holds no more of this than of the answers.
    if (pause)
      usleep((useconds_t) pause);
  }
  sleep(1);
  for (int i= 0; i < number; i++)
  {
    if (mysql_read_query_result(server))
    {
      fprintf(stderr, "talk: answer %d: %s\n", i, mysql_error(server));
      return 1;
    }
    wrong+= mysql_affected_rows(server) != 1;
  }
  mysql_close(server);
  if (wrong)
    fprintf(stderr, "talk: %d answers of %d are wrong\n", wrong, number);
  return wrong != 0;
}
