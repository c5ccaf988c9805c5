-- Words of rows that come many in one statement, and what that statement does to rows of its own.
CREATE TABLE t (id INT PRIMARY KEY, u INT, a TEXT, b TEXT, UNIQUE KEY u (u), FULLTEXT KEY a (a), FULLTEXT KEY ab (a, b)) ENGINE=@ENGINE@;
INSERT INTO t VALUES (1,1,'wren owls','crow'),(2,2,'wren','jays crow'),(3,3,NULL,'crow'),(4,4,'',NULL);
SELECT id FROM t WHERE MATCH (a) AGAINST ('wren') ORDER BY id;
SELECT id FROM t WHERE MATCH (a, b) AGAINST ('+crow +wren' IN BOOLEAN MODE) ORDER BY id;
-- A row that the statement has inserted is replaced, or changed, by it.
REPLACE INTO t VALUES (5,5,'robin','one'),(5,5,'finch','two'),(6,5,'siskin','three'),(1,1,'wren again','four');
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE MATCH (a) AGAINST ('robin finch siskin again owls') ORDER BY id;
INSERT INTO t VALUES (7,7,'heron','one'),(7,8,'heron','two'),(8,7,'egret','three') ON DUPLICATE KEY UPDATE a=CONCAT(a,' changed'), b=VALUES(b);
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE MATCH (a) AGAINST ('+heron +changed' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (a, b) AGAINST ('three egret') ORDER BY id;
INSERT IGNORE INTO t VALUES (9,9,'plover','one'),(9,10,'dunlin','two'),(10,9,'knot','three'),(11,11,'plover','four');
SELECT id FROM t WHERE MATCH (a) AGAINST ('plover dunlin knot') ORDER BY id;
-- It fails: nothing is there.
INSERT INTO t VALUES (20,20,'bittern','one'),(21,21,'bittern','two'),(1,22,'bittern','three');
SELECT id FROM t WHERE MATCH (a) AGAINST ('bittern') ORDER BY id;
CHECK TABLE t;
BEGIN;
INSERT INTO t VALUES (22,22,'bittern','one'),(23,23,'bittern','two');
SAVEPOINT s;
INSERT INTO t VALUES (24,24,'bittern','one'),(25,25,'bittern','two');
ROLLBACK TO s;
DELETE FROM t WHERE id=23;
COMMIT;
SELECT id FROM t WHERE MATCH (a) AGAINST ('bittern') ORDER BY id;
BEGIN;
INSERT INTO t VALUES (26,26,'bittern','one'),(27,27,'bittern','two');
ROLLBACK;
SELECT id FROM t WHERE MATCH (a) AGAINST ('bittern') ORDER BY id;
-- From the table itself, and into a new one.
INSERT INTO t SELECT id+100, u+100, CONCAT(a,' copied'), b FROM t WHERE a IS NOT NULL;
SELECT id FROM t WHERE MATCH (a) AGAINST ('+copied' IN BOOLEAN MODE) ORDER BY id;
INSERT INTO t SELECT id+1000, u+1000, a, 'found' FROM t WHERE MATCH (a) AGAINST ('copied');
SELECT COUNT(*) FROM t WHERE MATCH (a, b) AGAINST ('+found +copied' IN BOOLEAN MODE);
CREATE TABLE v (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY (a)) ENGINE=@ENGINE@ SELECT id, a FROM t;
SELECT COUNT(*) FROM v WHERE MATCH (a) AGAINST ('wren');
-- More than are kept back at once. InnoDB does not find all of them while it writes words out (29,369 of the 30,000 once, none of them
-- another time, for half a minute of a busy disk): it is asked for the text of the rows, only Weir for their words.
CREATE TABLE big LIKE t;
INSERT INTO big SELECT * FROM t;
INSERT INTO big SELECT seq+10000, seq+10000, CONCAT('many ', REPEAT(CONCAT('w', seq, ' '), 3), 'x', seq % 100, 'yy'), CONCAT('column', seq) FROM seq_1_to_30000;
SET @many = IF('@ENGINE@' LIKE 'I%', "a LIKE '%many%'", "MATCH (a) AGAINST ('many')");
SET @one = IF('@ENGINE@' LIKE 'I%', "a LIKE '% w777 %' AND b LIKE 'column777'", "MATCH (a, b) AGAINST ('+w777 +column777' IN BOOLEAN MODE)");
SET @some = IF('@ENGINE@' LIKE 'I%', "a LIKE '% x42yy' AND a LIKE 'many%'", "MATCH (a) AGAINST ('+x42yy +many' IN BOOLEAN MODE)");
EXECUTE IMMEDIATE CONCAT('SELECT COUNT(*) FROM big WHERE ', @many);
EXECUTE IMMEDIATE CONCAT('SELECT id FROM big WHERE ', @one);
EXECUTE IMMEDIATE CONCAT('SELECT COUNT(*) FROM big WHERE ', @some);
UPDATE big SET a='few' WHERE id>20000;
EXECUTE IMMEDIATE CONCAT('SELECT COUNT(*) FROM big WHERE ', @many);
DELETE FROM big WHERE id>10000;
EXECUTE IMMEDIATE CONCAT('SELECT COUNT(*) FROM big WHERE ', @many);
CHECK TABLE t, v, big;
DROP TABLE big;
-- What reads the table meanwhile: a trigger, a function.
CREATE TABLE seen (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=@ENGINE@;
CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW INSERT INTO seen (n) SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('wren');
INSERT INTO t VALUES (30,30,'gull','one'),(31,31,'gull','two');
DROP TRIGGER r;
SELECT COUNT(*), MIN(n)=MAX(n) FROM seen;
SELECT id FROM t WHERE MATCH (a) AGAINST ('gull') ORDER BY id;
-- A row that its foreign key refuses has no words.
CREATE TABLE parent (id INT PRIMARY KEY) ENGINE=@ENGINE@;
INSERT INTO parent VALUES (1),(2);
CREATE TABLE child (id INT PRIMARY KEY, p INT, a TEXT, FULLTEXT KEY (a), FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE) ENGINE=@ENGINE@;
INSERT IGNORE INTO child VALUES (1,1,'stork'),(2,9,'stork'),(3,2,'stork');
SELECT id FROM child WHERE MATCH (a) AGAINST ('stork') ORDER BY id;
DELETE FROM parent WHERE id=1;
SELECT id FROM child WHERE MATCH (a) AGAINST ('stork') ORDER BY id;
CHECK TABLE child;
-- A row that is replaced takes rows of the same table with it, this statement's among them.
CREATE TABLE own (id INT PRIMARY KEY, p INT, a TEXT, FULLTEXT KEY (a), FOREIGN KEY (p) REFERENCES own (id) ON DELETE CASCADE) ENGINE=@ENGINE@;
REPLACE INTO own VALUES (1,NULL,'avocet'),(2,1,'avocet'),(3,2,'avocet'),(1,NULL,'ruff'),(4,1,'avocet');
SELECT id FROM own WHERE MATCH (a) AGAINST ('avocet ruff') ORDER BY id;
CHECK TABLE own;
-- Rows of before, history included.
CREATE TABLE past (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY (a)) ENGINE=@ENGINE@ WITH SYSTEM VERSIONING;
REPLACE INTO past VALUES (1,'siskin'),(2,'siskin'),(1,'linnet'),(3,'siskin');
INSERT INTO past VALUES (4,'siskin'),(4,'siskin'),(2,'siskin') ON DUPLICATE KEY UPDATE a='twite';
SELECT id, a FROM past ORDER BY id;
SELECT id FROM past WHERE MATCH (a) AGAINST ('siskin') ORDER BY id;
SELECT id FROM past WHERE MATCH (a) AGAINST ('twite linnet') ORDER BY id;
CHECK TABLE past;
-- Under LOCK TABLES, with a function, from a procedure, and with what is shown of rows at once.
LOCK TABLES t WRITE;
INSERT INTO t VALUES (40,40,'curlew','one'),(41,41,'curlew','two'),(41,42,'curlew','three');
INSERT INTO t VALUES (40,40,'curlew','one'),(41,41,'curlew','two');
UPDATE t SET a='whimbrel' WHERE id=41;
UNLOCK TABLES;
SELECT id FROM t WHERE MATCH (a) AGAINST ('curlew') ORDER BY id;
DELIMITER //
CREATE FUNCTION many() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('godwit'))//
CREATE PROCEDURE twice() BEGIN INSERT INTO t VALUES (44,44,'godwit','one'),(45,45,'godwit','two'); INSERT INTO t SELECT id+2, u+2, a, b FROM t WHERE id IN (44,45); END//
DELIMITER ;
INSERT INTO v VALUES (900, CONCAT('found', many())),(901, CONCAT('found', many()));
CALL twice();
INSERT INTO v SELECT 902 + seq, CONCAT('found', many()) FROM seq_1_to_2;
SELECT id, a FROM v WHERE id >= 900 ORDER BY id;
SELECT id FROM v WHERE MATCH (a) AGAINST ('found0 found4') ORDER BY id;
SELECT id FROM t WHERE MATCH (a) AGAINST ('godwit') ORDER BY id;
INSERT INTO t VALUES (50,50,'stint','one'),(51,51,'stint','two') RETURNING id, a;
SELECT id FROM t WHERE MATCH (a) AGAINST ('stint') ORDER BY id;
DROP FUNCTION many;
DROP PROCEDURE twice;
-- At the other levels, and behind a row of another kind of error.
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
INSERT INTO t VALUES (60,60,'dotterel','one'),(61,61,'dotterel','two');
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
INSERT INTO t VALUES (62,62,'dotterel','one'),(63,63,'dotterel','two'),(62,64,'dotterel','three');
INSERT IGNORE INTO t VALUES (64,64,'dotterel','one'),('x',65,'dotterel','two'),(65,64,'dotterel','three'),(66,NULL,'dotterel','four');
SELECT id FROM t WHERE MATCH (a) AGAINST ('dotterel') ORDER BY id;
CHECK TABLE t, v;
-- Without a primary key.
CREATE TABLE n (a TEXT, FULLTEXT KEY (a)) ENGINE=@ENGINE@;
INSERT INTO n VALUES ('crane'),('crane stilt'),('stilt');
SELECT a FROM n WHERE MATCH (a) AGAINST ('crane') ORDER BY a;
DELETE FROM n WHERE a='crane';
SELECT a FROM n WHERE MATCH (a) AGAINST ('crane') ORDER BY a;
CHECK TABLE n;
DROP TABLE t, v, seen, child, parent, own, past, n;
