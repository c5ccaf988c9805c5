-- A name like those that ALTER gives to its copies is a name as others are.
CREATE TABLE `#sql-alter` (id INT PRIMARY KEY, z INT) ENGINE=@ENGINE@; BEGIN; INSERT INTO `#sql-alter` SELECT seq, seq FROM seq_1_to_20001; ROLLBACK; SELECT COUNT(*) FROM `#sql-alter`; DROP TABLE `#sql-alter`;
-- Columns are shown as their tables spell them, however a statement does.
CREATE TABLE parent (Id INT PRIMARY KEY, A INT, b INT, KEY(a,B)) ENGINE=@ENGINE@; CREATE TABLE child (X INT, y INT, FOREIGN KEY (x) REFERENCES parent(ID), CONSTRAINT two FOREIGN KEY (X,Y) REFERENCES parent(a,B)) ENGINE=@ENGINE@; SHOW CREATE TABLE child; SELECT column_name, referenced_column_name FROM information_schema.key_column_usage WHERE table_schema=DATABASE() AND table_name='child' ORDER BY constraint_name, ordinal_position; ALTER TABLE child ADD CONSTRAINT three FOREIGN KEY (y) REFERENCES parent(iD); SHOW CREATE TABLE child; DROP TABLE child;
-- A name of a foreign key that is made up fits into a statement.
EXECUTE IMMEDIATE CONCAT('CREATE TABLE `', REPEAT('t',58), '` (x INT, FOREIGN KEY (x) REFERENCES parent(id)) ENGINE=@ENGINE@'); SHOW TABLES;
-- When a table was made.
SELECT table_name, create_time BETWEEN NOW() - INTERVAL 1 HOUR AND NOW() FROM information_schema.tables WHERE table_schema=DATABASE(); DROP TABLE parent;
