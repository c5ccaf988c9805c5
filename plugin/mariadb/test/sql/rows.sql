-- How many rows a table is taken to have stays what it was when the server closes it.
CREATE TABLE t (id INT PRIMARY KEY, c CHAR(60)) ENGINE=@ENGINE@;
INSERT INTO t SELECT seq, 'x' FROM seq_1_to_16049;
DELETE FROM t WHERE id > 16000;
FLUSH TABLES;
SELECT table_rows > 15500 AND table_rows < 16500 FROM information_schema.tables WHERE table_name='t' AND table_schema=DATABASE();
CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.c='y';
SELECT table_rows > 15500 AND table_rows < 16500 FROM information_schema.tables WHERE table_name='t' AND table_schema=DATABASE();
ALTER TABLE t FORCE;
FLUSH TABLES;
SELECT table_rows > 15500 AND table_rows < 16500 FROM information_schema.tables WHERE table_name='t' AND table_schema=DATABASE();
TRUNCATE TABLE t;
FLUSH TABLES;
SELECT table_rows < 2 FROM information_schema.tables WHERE table_name='t' AND table_schema=DATABASE();
DROP TABLE t;
CREATE TABLE t (id INT PRIMARY KEY) ENGINE=@ENGINE@;
SELECT table_rows < 2 FROM information_schema.tables WHERE table_name='t' AND table_schema=DATABASE();
