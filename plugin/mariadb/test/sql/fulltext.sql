CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(200), body TEXT, FULLTEXT KEY both_of (title, body), FULLTEXT KEY (body)) ENGINE=@ENGINE@ CHARSET=utf8mb4;
SHOW CREATE TABLE t;
SELECT index_name, column_name, index_type FROM information_schema.statistics WHERE table_schema='compare_it' AND table_name='t' ORDER BY index_name, seq_in_index;
INSERT INTO t (title, body) VALUES
 ('MySQL Tutorial', 'DBMS stands for DataBase and more about databases'),
 ('How To Use MySQL Well', 'After you went through a tutorial you know the database'),
 ('Optimizing MySQL', 'In this tutorial we will show database database database tuning'),
 ('1001 MySQL Tricks', '1. Never run mysqld as root. 2. Watch the logs'),
 ('MySQL vs. YourSQL', 'In the following database comparison a winner is found'),
 ('MySQL Security', 'When configured properly, MySQL is a secure server'),
 (NULL, 'no title, but a database'),
 ('only a title', NULL),
 (NULL, NULL),
 ('', ''),
 ('Grüße aus Köln', 'Straße und MÜLL, naïve café'),
 ('кириллица', 'слова и предложения'),
 ('l''amour et d''autres', 'aujourd''hui l''homme _under_score_ a1b2');
ANALYZE TABLE t;
-- What is found, in natural language.
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('database') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('DATABASE tutorial') ORDER BY id;
SELECT id FROM t WHERE MATCH (body) AGAINST ('mysql') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST (NULL) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('the') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('to') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('kOLN') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('cafe') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('СЛОВА') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('amour') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('aujourd') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('homme') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('_under_score_') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('a1b2') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"tutorial we"') ORDER BY id;
-- How well, and in which order.
SELECT id, ROUND(MATCH (title, body) AGAINST ('database'), 4) AS r FROM t ORDER BY r DESC, id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('database tutorial'), 4) AS r FROM t WHERE MATCH (title, body) AGAINST ('database tutorial') ORDER BY r DESC, id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('mysql tutorial database winner'), 4) AS r FROM t ORDER BY r DESC, id;
SELECT COUNT(*), ROUND(SUM(MATCH (body) AGAINST ('database')), 3) FROM t WHERE MATCH (body) AGAINST ('tutorial');
SELECT id, ROUND(MATCH (body) AGAINST ('+database -tutorial' IN BOOLEAN MODE), 4) AS r FROM t HAVING r > 0 ORDER BY r DESC, id;
EXPLAIN SELECT id FROM t WHERE MATCH (title, body) AGAINST ('database');
-- Operators.
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+database' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+database +tutorial' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+database -tutorial' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('-database' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('database ~tutorial' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('data*' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+(tuning winner) +data*' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+database +(>winner <tuning)' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+database +(tutorial -tuning)' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('tutorial (database) -tuning' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql-security' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+mysql.security' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+mysql -following.database' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+the +mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+mysql the' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql* -tricks' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('()' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+() mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('1001' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('%mysql%' IN BOOLEAN MODE) ORDER BY id;
-- Phrases, and words near each other.
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"database tuning"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"the following database"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"know the database"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"know a database"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"DBMS stands for database"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"MySQL When"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"Tutorial DBMS"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+"mysql tutorial" -secure' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('-"mysql tutorial" mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"tutorial database" @3' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"tutorial database" @5' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"tutorial database" @8' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"mysql database" @2' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"tutorial dbms" @2' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('""' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"the a"' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+"the a" mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"unclosed phrase mysql' IN BOOLEAN MODE) ORDER BY id;
-- What is asked wrongly.
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+ mysql -' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+-mysql' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('(mysql' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql)' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql @4' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('(mysql @4' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('"mysql tutorial" @x' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql**' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('*' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('*mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('* "mysql"' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title) AGAINST ('mysql');
SELECT id FROM t WHERE MATCH (title) AGAINST ('mysql' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (id) AGAINST ('mysql');
SELECT id FROM t WHERE MATCH (title, body) AGAINST (title);
-- Expansion.
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner' WITH QUERY EXPANSION) ORDER BY id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('winner' WITH QUERY EXPANSION), 4) AS r FROM t ORDER BY r DESC, id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('nowhere' WITH QUERY EXPANSION) ORDER BY id;
-- Changes.
UPDATE t SET body='nothing of the kind' WHERE id=5;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('kind nothing') ORDER BY id;
UPDATE t SET title='A winner after all' WHERE id=5;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner') ORDER BY id;
UPDATE t SET id=50 WHERE id=5;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner') ORDER BY id;
DELETE FROM t WHERE id=50;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner') ORDER BY id;
REPLACE INTO t VALUES (4, 'replaced', 'a winner again');
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('winner tricks') ORDER BY id;
INSERT INTO t VALUES (4, 'x', 'y') ON DUPLICATE KEY UPDATE body=CONCAT(body, ' surely');
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('+surely +winner' IN BOOLEAN MODE) ORDER BY id;
UPDATE t SET body=CONCAT(body, ' updated') WHERE MATCH (title, body) AGAINST ('tutorial');
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('updated') ORDER BY id;
DELETE FROM t WHERE MATCH (title, body) AGAINST ('+updated +tuning' IN BOOLEAN MODE);
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('updated') ORDER BY id;
-- Rolled back.
BEGIN;
INSERT INTO t (id, title, body) VALUES (100, 'gone soon', 'ephemeral');
UPDATE t SET body='ephemeral too' WHERE id=1;
DELETE FROM t WHERE id=2;
ROLLBACK;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('ephemeral') ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('databases tutorial') ORDER BY id;
BEGIN;
INSERT INTO t (id, title, body) VALUES (101, 'kept', 'savepoint one');
SAVEPOINT s;
INSERT INTO t (id, title, body) VALUES (102, 'not kept', 'savepoint two');
ROLLBACK TO s;
COMMIT;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('savepoint') ORDER BY id;
CHECK TABLE t;
-- In joins, groups and unions.
CREATE TABLE u (id INT PRIMARY KEY, word VARCHAR(20)) ENGINE=@ENGINE@;
INSERT INTO u VALUES (1, 'database'), (2, 'mysql'), (4, 'winner'), (6, 'server');
SELECT t.id, u.word FROM t JOIN u USING (id) WHERE MATCH (t.title, t.body) AGAINST ('mysql') ORDER BY id;
SELECT t.id, u.word FROM u LEFT JOIN t ON u.id=t.id AND MATCH (t.title, t.body) AGAINST ('mysql') ORDER BY u.word;
SELECT (SELECT COUNT(*) FROM t WHERE MATCH (title, body) AGAINST ('mysql')) AS n;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql') AND id > 1 ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('secure') OR id = 1 ORDER BY id;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql') AND MATCH (body) AGAINST ('tutorial') ORDER BY id;
SELECT id FROM t WHERE NOT MATCH (title, body) AGAINST ('mysql') ORDER BY id;
SELECT LENGTH(title) AS l, COUNT(*) FROM t WHERE MATCH (title, body) AGAINST ('mysql') GROUP BY l ORDER BY l;
SELECT id FROM t WHERE MATCH (title, body) AGAINST ('mysql') UNION SELECT id FROM t WHERE MATCH (body) AGAINST ('database') ORDER BY id;
PREPARE p FROM 'SELECT id FROM t WHERE MATCH (title, body) AGAINST (?) ORDER BY id';
SET @word='secure';
EXECUTE p USING @word;
SET @word='updated';
EXECUTE p USING @word;
TRUNCATE TABLE t;
SELECT COUNT(*) FROM t WHERE MATCH (title, body) AGAINST ('mysql');
INSERT INTO t (title, body) VALUES ('mysql', 'again');
SELECT COUNT(*) FROM t WHERE MATCH (title, body) AGAINST ('mysql');
DROP TABLE t, u;
-- Without a primary key.
CREATE TABLE t (a TEXT, FULLTEXT KEY f (a)) ENGINE=@ENGINE@;
INSERT INTO t VALUES ('one wren'), ('two wrens'), ('wren wren owl'), ('an owl');
ANALYZE TABLE t;
SELECT a FROM t WHERE MATCH (a) AGAINST ('wren') ORDER BY a;
SELECT a, ROUND(MATCH (a) AGAINST ('wren owl'), 4) AS r FROM t ORDER BY r DESC, a;
UPDATE t SET a='no bird' WHERE MATCH (a) AGAINST ('two');
SELECT a FROM t WHERE MATCH (a) AGAINST ('wren* bird' IN BOOLEAN MODE) ORDER BY a;
DELETE FROM t WHERE MATCH (a) AGAINST ('bird');
SELECT a FROM t ORDER BY a;
CHECK TABLE t;
DROP TABLE t;
