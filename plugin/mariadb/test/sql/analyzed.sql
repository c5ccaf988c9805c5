# What ANALYZE finds out is known at once, also where the table was opened when it was empty and is in the server's cache.
CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a,b)) ENGINE=@ENGINE@;
CREATE TABLE s (a INT PRIMARY KEY) ENGINE=@ENGINE@;
SELECT COUNT(*) FROM t;
INSERT INTO t SELECT a.seq, b.seq FROM seq_1_to_500 a, seq_1_to_8 b;
INSERT INTO s SELECT seq FROM seq_1_to_100;
ANALYZE TABLE s, t;
EXPLAIN SELECT * FROM s STRAIGHT_JOIN t ON t.a=s.a;
SHOW INDEX FROM t;
