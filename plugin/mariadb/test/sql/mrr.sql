# Many ranges at once (MRR) and joins by batches of keys (BKA): the same plans and the same answers. mrr_cost_based=off takes MRR wherever it can be had.
SET optimizer_switch='mrr=on,mrr_cost_based=off'; SET mrr_buffer_size=8192, join_buffer_size=16384;
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, s VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, t TEXT, pad CHAR(40), KEY a (a), KEY ab (a,b), KEY d (b DESC, a), KEY s (s), KEY p (s(3)), KEY tp (t(5))) ENGINE=@ENGINE@;
INSERT INTO t SELECT seq, (seq*7919)%500, (seq*31)%97, ELT(1+seq%5,'Ab','aB','xyz','Xyzzy',NULL), REPEAT(CHAR(97+seq%26),seq%40), 'pad' FROM seq_1_to_4000; ANALYZE TABLE t;
CREATE TABLE n (x INT, y INT NOT NULL, z VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, UNIQUE KEY x (x), KEY y (y DESC)) ENGINE=@ENGINE@;
INSERT INTO n SELECT IF(seq%10=0,NULL,seq*3), seq%50, ELT(1+seq%3,'AB','xyZ ','xyzzy') FROM seq_1_to_600; ANALYZE TABLE n;
CREATE TABLE w (k1 INT, k2 VARCHAR(10), v INT, u INT AS (v+1) VIRTUAL, PRIMARY KEY (k1 DESC,k2), KEY v (v), KEY u (u)) ENGINE=@ENGINE@;
INSERT INTO w(k1,k2,v) SELECT seq%40, CONCAT('k',seq), seq%60 FROM seq_1_to_1200; ANALYZE TABLE w;
EXPLAIN SELECT pad FROM t FORCE INDEX(a) WHERE a IN (3,5,7,400) OR a BETWEEN 100 AND 110;
SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t FORCE INDEX(a) WHERE a IN (3,5,7,400) OR a BETWEEN 100 AND 110;
EXPLAIN SELECT pad FROM t FORCE INDEX(ab) WHERE a BETWEEN 100 AND 140 AND b%3=1;
SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t FORCE INDEX(ab) WHERE a BETWEEN 100 AND 140 AND b%3=1;
EXPLAIN SELECT pad FROM t FORCE INDEX(d) WHERE b BETWEEN 20 AND 24 AND a%2=0 OR b>90;
SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t FORCE INDEX(d) WHERE b BETWEEN 20 AND 24 AND a%2=0 OR b>90;
EXPLAIN SELECT pad FROM t FORCE INDEX(d) WHERE b BETWEEN 20 AND 24 ORDER BY b DESC, a LIMIT 3;
EXPLAIN SELECT pad FROM t FORCE INDEX(s) WHERE s IN ('ab','XYZ ') AND id%7=0;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX(s) WHERE s IN ('ab','XYZ ') AND id%7=0;
EXPLAIN SELECT pad FROM t FORCE INDEX(p) WHERE s IN ('ab','XYZ ') AND id%7=0;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX(p) WHERE s IN ('ab','XYZ ') AND id%7=0;
EXPLAIN SELECT pad FROM t FORCE INDEX(tp) WHERE t BETWEEN 'bb' AND 'cccccccccccc';
SELECT COUNT(*), SUM(id), MD5(GROUP_CONCAT(t ORDER BY id)) FROM t FORCE INDEX(tp) WHERE t BETWEEN 'bb' AND 'cccccccccccc';
SELECT id, LENGTH(t) FROM t FORCE INDEX(a) WHERE a BETWEEN 100 AND 102 ORDER BY id LIMIT 20;
EXPLAIN SELECT a FROM t FORCE INDEX(a) WHERE a BETWEEN 100 AND 102;
EXPLAIN SELECT * FROM w FORCE INDEX(v) WHERE v BETWEEN 10 AND 14; EXPLAIN SELECT * FROM w FORCE INDEX(u) WHERE u BETWEEN 10 AND 14; EXPLAIN SELECT v FROM w WHERE k1 BETWEEN 10 AND 14;
SELECT COUNT(*), SUM(k1), SUM(CRC32(k2)), SUM(u) FROM w FORCE INDEX(v) WHERE v BETWEEN 10 AND 14; SELECT COUNT(*), SUM(k1), SUM(CRC32(k2)), SUM(u) FROM w FORCE INDEX(u) WHERE u BETWEEN 10 AND 14;
EXPLAIN SELECT * FROM n FORCE INDEX(y) WHERE y IN (1,4,9) AND x>90; SELECT * FROM n FORCE INDEX(y) WHERE y IN (1,4,9) AND x>90 ORDER BY x;
# Two index scans under one handler.
EXPLAIN SELECT * FROM t FORCE INDEX(a,s) WHERE a IN (3,5) OR s='xyz'; SELECT COUNT(*), SUM(id) FROM t FORCE INDEX(a,s) WHERE a IN (3,5) OR s='xyz';
# A subquery that scans again and again.
EXPLAIN SELECT x, (SELECT COUNT(pad) FROM t FORCE INDEX(a) WHERE a IN (3,5,7) AND b>x) c FROM n WHERE x<60; SELECT x, (SELECT COUNT(pad) FROM t FORCE INDEX(a) WHERE a IN (3,5,7) AND b>x) c FROM n WHERE x<60 ORDER BY x;
# Changes never go by it.
EXPLAIN UPDATE t SET pad='x' WHERE a IN (3,5,7); EXPLAIN DELETE FROM t WHERE a IN (3,5,7);
# Joins.
SET join_cache_level=6; EXPLAIN SELECT x, pad FROM n, t WHERE t.a=n.x AND n.y<9; SELECT COUNT(*), SUM(t.id), SUM(x) FROM n, t WHERE t.a=n.x AND n.y<9;
SET optimizer_switch='mrr_sort_keys=on'; EXPLAIN SELECT x, pad FROM n, t WHERE t.a=n.x AND n.y<9; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x AND n.y<9;
SET join_cache_level=8; EXPLAIN SELECT x, pad FROM n, t WHERE t.a=n.x AND n.y<9; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x AND n.y<9;
EXPLAIN SELECT x, pad FROM n, t WHERE t.id=n.x; SELECT COUNT(*), SUM(t.id), SUM(CRC32(pad)) FROM n, t WHERE t.id=n.x;
EXPLAIN SELECT x, pad FROM n, t FORCE INDEX(s) WHERE t.s=n.z AND n.y=7 AND t.id%11=0; SELECT COUNT(*), SUM(t.id), SUM(x) FROM n, t FORCE INDEX(s) WHERE t.s=n.z AND n.y=7 AND t.id%11=0;
EXPLAIN SELECT x, pad FROM n, t FORCE INDEX(p) WHERE t.s=n.z AND n.y=7 AND t.id%11=0; SELECT COUNT(*), SUM(t.id), SUM(x) FROM n, t FORCE INDEX(p) WHERE t.s=n.z AND n.y=7 AND t.id%11=0;
EXPLAIN SELECT n.x, t.pad FROM n LEFT JOIN t FORCE INDEX(ab) ON t.a=n.y AND t.b<n.x AND t.b>40 WHERE n.y<5; SELECT COUNT(*), COUNT(t.id), SUM(t.id), SUM(n.x) FROM n LEFT JOIN t FORCE INDEX(ab) ON t.a=n.y AND t.b<n.x AND t.b>40 WHERE n.y<5;
EXPLAIN SELECT n.x, t.pad FROM n LEFT JOIN t FORCE INDEX(d) ON t.b=n.y AND t.a<90 WHERE n.y<5; SELECT COUNT(*), COUNT(t.id), SUM(t.id), SUM(n.x) FROM n LEFT JOIN t FORCE INDEX(d) ON t.b=n.y AND t.a<90 WHERE n.y<5;
EXPLAIN SELECT n.x, w.u FROM n, w FORCE INDEX(v) WHERE w.v=n.y AND n.x<60; SELECT COUNT(*), SUM(u), SUM(CRC32(k2)) FROM n, w FORCE INDEX(v) WHERE w.v=n.y AND n.x<60;
EXPLAIN SELECT n.x, w.u FROM n, w FORCE INDEX(u) WHERE w.u=n.y AND n.x<60; SELECT COUNT(*), SUM(u), SUM(CRC32(k2)) FROM n, w FORCE INDEX(u) WHERE w.u=n.y AND n.x<60;
EXPLAIN SELECT n.x, w.u FROM n, w FORCE INDEX(PRIMARY) WHERE w.k1=n.y AND n.x<60; SELECT COUNT(*), SUM(u), SUM(CRC32(k2)) FROM n, w FORCE INDEX(PRIMARY) WHERE w.k1=n.y AND n.x<60;
EXPLAIN SELECT t.pad, n.y, w.v FROM t, n, w WHERE t.a<10 AND n.x=t.b AND w.v=n.y; SELECT COUNT(*), SUM(t.id), SUM(n.y), SUM(CRC32(k2)) FROM t, n, w WHERE t.a<10 AND n.x=t.b AND w.v=n.y;
EXPLAIN SELECT COUNT(*) FROM n o, n i WHERE i.x=o.y; SELECT COUNT(*), SUM(i.y) FROM n o, n i WHERE i.x=o.y; EXPLAIN SELECT COUNT(*), SUM(i.x) FROM n o, n i WHERE i.y=o.x AND o.y=2; SELECT COUNT(*), SUM(i.x) FROM n o, n i WHERE i.y=o.x AND o.y=2;
EXPLAIN SELECT id, pad FROM t WHERE a IN (SELECT x FROM n WHERE y<3) AND b<20; SELECT COUNT(*), SUM(id) FROM t WHERE a IN (SELECT x FROM n WHERE y<3) AND b<20;
SELECT COUNT(*), SUM(id) FROM t WHERE EXISTS (SELECT 1 FROM n, w WHERE w.v=n.y AND n.x=t.a AND w.u>20);
# A filter of another index beside it.
EXPLAIN SELECT pad FROM t FORCE INDEX(a,d) WHERE a BETWEEN 50 AND 90 AND b BETWEEN 3 AND 4; SELECT COUNT(*), SUM(id) FROM t FORCE INDEX(a,d) WHERE a BETWEEN 50 AND 90 AND b BETWEEN 3 AND 4;
EXPLAIN SELECT x, pad FROM n, t FORCE INDEX(a,d) WHERE t.a=n.x AND b BETWEEN 3 AND 4; SELECT COUNT(*), SUM(id) FROM n, t FORCE INDEX(a,d) WHERE t.a=n.x AND b BETWEEN 3 AND 4;
# Buffers as small as may be.
SET mrr_buffer_size=8192, join_buffer_size=128; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x; SELECT COUNT(*), SUM(id) FROM t FORCE INDEX(a) WHERE a>50 AND LENGTH(t)>3;
SET join_buffer_size=512; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x; SELECT COUNT(*), SUM(t.id), SUM(n.y), SUM(CRC32(k2)) FROM t, n, w WHERE t.a<10 AND n.x=t.b AND w.v=n.y; SET join_buffer_size=16384;
# Inside a transaction, with its own changes; locked; then changes of what was read.
BEGIN; DELETE FROM t WHERE a=5; UPDATE t SET a=7, pad='own' WHERE a=400; INSERT INTO t VALUES (9001,3,4,'ab','own','own'),(9002,30,4,'ab','own','own'); UPDATE t SET id=id+20000 WHERE a=110;
SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t FORCE INDEX(a) WHERE a IN (3,5,7,400) OR a BETWEEN 100 AND 110;
SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x;
EXPLAIN SELECT pad FROM t FORCE INDEX(a) WHERE a IN (3,5,7,400) FOR UPDATE; SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t FORCE INDEX(a) WHERE a IN (3,5,7,400) FOR UPDATE;
EXPLAIN SELECT x, pad FROM n, t WHERE t.a=n.x AND n.y<9 FOR UPDATE; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x AND n.y<9 FOR UPDATE;
EXPLAIN SELECT x, pad FROM n, t WHERE t.a=n.x AND n.y<9 LOCK IN SHARE MODE; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x AND n.y<9 LOCK IN SHARE MODE;
SELECT COUNT(*), SUM(t.id) FROM n, t WHERE t.a=n.x AND n.y<9 FOR UPDATE SKIP LOCKED;
UPDATE n, t SET t.pad='both' WHERE t.a=n.x AND n.y<9; SELECT pad, COUNT(*) FROM t GROUP BY pad; DELETE t FROM n, t WHERE t.a=n.x AND n.y<4; SELECT pad, COUNT(*) FROM t GROUP BY pad;
INSERT INTO n SELECT t.id+10000, t.b, 'new' FROM n, t WHERE t.a=n.x AND t.b<3; SELECT COUNT(*), SUM(x) FROM n; ROLLBACK; SELECT COUNT(*), SUM(id), SUM(CRC32(pad)) FROM t;
# Other levels; a temporary table; a cursor that reads while the same rows are changed.
SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT COUNT(*), SUM(t.id), SUM(x), SUM(CRC32(pad)) FROM n, t WHERE t.a=n.x;
CREATE TEMPORARY TABLE tmp (i INT PRIMARY KEY, a INT, c CHAR(9), KEY a (a)) ENGINE=@ENGINE@; INSERT INTO tmp SELECT seq, seq%30, 'c' FROM seq_1_to_900; EXPLAIN SELECT c FROM tmp FORCE INDEX(a) WHERE a IN (1,3,5); SELECT COUNT(*), SUM(i), MAX(c) FROM tmp FORCE INDEX(a) WHERE a IN (1,3,5); SELECT COUNT(*), SUM(i), MAX(c) FROM n, tmp WHERE tmp.a=n.x;
DELIMITER //
CREATE PROCEDURE walk() BEGIN DECLARE i, seen INT DEFAULT 0; DECLARE over BOOL DEFAULT FALSE; DECLARE c CURSOR FOR SELECT id FROM t FORCE INDEX(a) WHERE a IN (3,5,7) AND pad<>'gone'; DECLARE CONTINUE HANDLER FOR NOT FOUND SET over=TRUE; OPEN c; one: LOOP FETCH c INTO i; IF over THEN LEAVE one; END IF; UPDATE t SET pad='gone', a=a+2 WHERE id=i; SET seen=seen+1; END LOOP; CLOSE c; SELECT seen; END//
CREATE FUNCTION gone(i INT) RETURNS INT BEGIN DELETE FROM t WHERE a=i+2 LIMIT 1; RETURN i; END//
DELIMITER ;
CALL walk(); SELECT a, COUNT(*) FROM t WHERE pad='gone' GROUP BY a; SELECT SUM(gone(a)), COUNT(pad) FROM t FORCE INDEX(a) WHERE a IN (20,22,24); SELECT COUNT(*), SUM(id) FROM t;
PREPARE p FROM 'SELECT COUNT(*), SUM(id), MAX(pad) FROM n, t WHERE t.a=n.x AND n.y<?'; SET @y=9; EXECUTE p USING @y; SET @y=20; EXECUTE p USING @y; EXECUTE p USING @y; DEALLOCATE PREPARE p;
ALTER TABLE t ADD KEY b2 (b, pad); EXPLAIN SELECT s FROM t FORCE INDEX(b2) WHERE b IN (2,4) AND pad LIKE 'p%'; SELECT COUNT(*), COUNT(s) FROM t FORCE INDEX(b2) WHERE b IN (2,4) AND pad LIKE 'p%';
CREATE TABLE part (id INT, a INT, c CHAR(20), PRIMARY KEY (id), KEY a (a)) ENGINE=@ENGINE@ PARTITION BY HASH(id) PARTITIONS 3; INSERT INTO part SELECT seq, seq%50, 'c' FROM seq_1_to_1500; ANALYZE TABLE part;
EXPLAIN SELECT c FROM part FORCE INDEX(a) WHERE a IN (1,3,5); SELECT COUNT(*), SUM(id), MAX(c) FROM part FORCE INDEX(a) WHERE a IN (1,3,5); EXPLAIN SELECT x, c FROM n, part WHERE part.a=n.x; SELECT COUNT(*), SUM(id), MAX(c) FROM n, part WHERE part.a=n.x; SELECT COUNT(*), SUM(id), MAX(c) FROM n, part WHERE part.id=n.x;
SELECT COUNT(*), SUM(id), MAX(c) FROM n, part WHERE part.a=n.x FOR UPDATE; UPDATE n, part SET c='d' WHERE part.a=n.x; SELECT c, COUNT(*) FROM part GROUP BY c;
