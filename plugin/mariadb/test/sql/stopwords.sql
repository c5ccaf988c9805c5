-- Stopwords from a table: by the setting that each engine has, for the keys that are made then.
EXECUTE IMMEDIATE CONCAT('CREATE TABLE stop (value VARCHAR(30)) ENGINE=Inno', 'DB'); INSERT INTO stop VALUES ('owl'),('wren'); CREATE TABLE t (id INT PRIMARY KEY, x TEXT) ENGINE=@ENGINE@; INSERT INTO t VALUES (1,'the wren and the owl'),(2,'the crow with the wren'),(3,'about a jay'),(4,'crow owl');
SET SESSION innodb_ft_user_stopword_table='compare_it/stop', weir_ft_stopwords=(SELECT GROUP_CONCAT(value SEPARATOR ' ') FROM stop); ALTER TABLE t ADD FULLTEXT KEY (x);
SELECT id FROM t WHERE MATCH (x) AGAINST ('wren owl') ORDER BY id; SELECT id FROM t WHERE MATCH (x) AGAINST ('the') ORDER BY id; SELECT id FROM t WHERE MATCH (x) AGAINST ('about crow') ORDER BY id; SELECT id FROM t WHERE MATCH (x) AGAINST ('+owl +crow' IN BOOLEAN MODE) ORDER BY id;
-- A key keeps what it was made with; what is written later is cut by it.
SET SESSION innodb_ft_user_stopword_table=DEFAULT, weir_ft_stopwords=DEFAULT; INSERT INTO t VALUES (5,'the owl with a jay'); UPDATE t SET x='the wren once more' WHERE id=3;
SELECT id FROM t WHERE MATCH (x) AGAINST ('owl') ORDER BY id; SELECT id FROM t WHERE MATCH (x) AGAINST ('with') ORDER BY id; SELECT id FROM t WHERE MATCH (x) AGAINST ('jay more') ORDER BY id; CHECK TABLE t;
-- None at all.
SET SESSION innodb_ft_enable_stopword=OFF, weir_ft_stopwords=''; CREATE TABLE u (id INT PRIMARY KEY, x TEXT, FULLTEXT KEY (x)) ENGINE=@ENGINE@; INSERT INTO u SELECT * FROM t; SELECT id FROM u WHERE MATCH (x) AGAINST ('the') ORDER BY id; SELECT id FROM u WHERE MATCH (x) AGAINST ('with and') ORDER BY id;
SET SESSION innodb_ft_enable_stopword=DEFAULT, weir_ft_stopwords=DEFAULT; CREATE TABLE v (id INT PRIMARY KEY, x TEXT, FULLTEXT KEY (x)) ENGINE=@ENGINE@; INSERT INTO v SELECT * FROM t; SELECT id FROM v WHERE MATCH (x) AGAINST ('the with') ORDER BY id; SELECT id FROM v WHERE MATCH (x) AGAINST ('owl') ORDER BY id;
DROP TABLE t, u, v, stop;
