import { expect, test } from '@jest/globals'
import { inspectSql } from '../../../safety/sql/inspect.ts'

const reads = String.raw`
SELECT 1
select version(), @@version, @@global.read_only
SELECT 1;
SELECT 1; SELECT 2;
SELECT 1\G
SHOW REPLICA STATUS
SHOW REPLICA STATUS\G
show replica status for channel 'a'
SHOW SLAVE STATUS\G
SHOW ALL SLAVES STATUS
SHOW MASTER STATUS
SHOW BINARY LOG STATUS
SHOW BINARY LOGS
SHOW REPLICAS
SHOW SLAVE HOSTS
SHOW PROCESSLIST
SHOW FULL PROCESSLIST
SHOW VARIABLES
SHOW GLOBAL VARIABLES LIKE 'max_connections'
SHOW VARIABLES WHERE Variable_name = 'read_only'
SHOW GLOBAL STATUS LIKE 'Threads_%'
SHOW SESSION STATUS
SHOW ENGINE INNODB STATUS
SHOW ENGINE INNODB STATUS\G
SHOW ENGINES
SHOW DATABASES
SHOW SCHEMAS LIKE 'app%'
SHOW TABLES
SHOW FULL TABLES FROM app LIKE 'o%'
SHOW OPEN TABLES WHERE In_use > 0
SHOW TABLE STATUS FROM app
SHOW CREATE TABLE orders
SHOW CREATE TABLE app.orders\G
SHOW CREATE VIEW v
SHOW COLUMNS FROM orders
SHOW FULL COLUMNS FROM orders FROM app
SHOW INDEX FROM orders
SHOW KEYS FROM app.orders WHERE Key_name = 'PRIMARY'
SHOW TRIGGERS
SHOW EVENTS
SHOW PROCEDURE STATUS
SHOW WARNINGS
SHOW WARNINGS LIMIT 10
SHOW ERRORS LIMIT 0, 5
SHOW PLUGINS
SHOW CHARACTER SET
SHOW COLLATION LIKE 'utf8%'
DESCRIBE orders
DESC app.orders
DESC orders id
EXPLAIN orders
EXPLAIN SELECT * FROM orders WHERE id = 1
EXPLAIN FORMAT=JSON SELECT * FROM orders
EXPLAIN FOR CONNECTION 5
EXPLAIN EXTENDED SELECT 1
SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'
SELECT * FROM information_schema.innodb_trx\G
SELECT trx_id, trx_started, TIMESTAMPDIFF(SECOND, trx_started, NOW()) FROM information_schema.INNODB_TRX
SELECT table_schema, ROUND(SUM(data_length + index_length) / 1024 / 1024, 1) AS mb FROM information_schema.tables GROUP BY table_schema
SELECT * FROM performance_schema.replication_group_members
SELECT * FROM performance_schema.data_lock_waits
SELECT * FROM performance_schema.events_statements_summary_by_digest ORDER BY SUM_TIMER_WAIT DESC LIMIT 10
SELECT * FROM sys.innodb_lock_waits
SELECT * FROM mysql.gtid_executed
SELECT * FROM mysql.innodb_table_stats
SELECT * FROM orders WHERE created_at > NOW() - INTERVAL 1 HOUR
SELECT * FROM orders WHERE created_at > DATE_SUB(NOW(), INTERVAL 1 DAY)
SELECT status, COUNT(*) FROM orders GROUP BY status WITH ROLLUP
SELECT status, COUNT(*) c FROM orders GROUP BY status HAVING c > 1 ORDER BY c DESC LIMIT 5 OFFSET 10
SELECT DISTINCT a FROM t
SELECT a AS 'x', b y FROM t AS u
SELECT t.*, u.a FROM t, u WHERE t.id = u.id
SELECT * FROM t LEFT JOIN u ON t.id = u.id INNER JOIN v USING (id)
SELECT * FROM t STRAIGHT_JOIN u ON t.id = u.id
SELECT * FROM t NATURAL JOIN (SELECT max(id) AS id FROM u) x
SELECT * FROM t USE INDEX (i)
SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id = 1
SELECT * FROM (SELECT 1 AS a) x
SELECT (SELECT MAX(id) FROM orders)
SELECT EXISTS (SELECT 1 FROM orders)
SELECT * FROM t WHERE id IN (1, 2, 3)
SELECT * FROM t WHERE id NOT IN (SELECT id FROM u)
SELECT * FROM t WHERE a LIKE 'x%' AND b NOT LIKE '%y' OR c REGEXP '^z' XOR d RLIKE 'q'
SELECT * FROM t WHERE a BETWEEN 1 AND 2
SELECT * FROM t WHERE a IS NULL OR b IS NOT NULL OR c IS TRUE OR d <=> NULL
SELECT * FROM t WHERE a > ALL (SELECT b FROM u)
SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END FROM t
SELECT IF(a > 1, 'x', 'y'), IFNULL(a, 0), COALESCE(a, b) FROM t
SELECT CAST(a AS UNSIGNED), CONVERT(b USING utf8mb4), CAST(c AS DECIMAL(10, 2)) FROM t
SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR ', ') FROM t
SELECT JSON_EXTRACT(doc, '$.a'), doc->'$.b', doc->>'$.c' FROM t
SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t
SELECT SUM(x) OVER w FROM t WINDOW w AS (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
SELECT EXTRACT(YEAR FROM created_at), TRIM(BOTH ' ' FROM a), SUBSTRING(a FROM 1 FOR 2) FROM t
SELECT DATE '2026-01-01', X'41', 0x41, 1.5e3, .5
SELECT a + b - c * d / e % f DIV 2, -a, ~b, !c, a << 1, b | c FROM t
SELECT 1 UNION ALL SELECT 2 UNION SELECT 3 ORDER BY 1
(SELECT 1) UNION (SELECT 2)
WITH a AS (SELECT 1 AS x) SELECT x FROM a
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
TABLE orders
VALUES ROW(1, 2), ROW(3, 4)
SELECT 1 FROM DUAL
SELECT 'DROP TABLE users'
SELECT "it's"
SELECT 'it''s'
SELECT 'a; b'
SELECT ${'`drop`'} FROM ${'`select`'}
SELECT ${'`a`.`b`'} FROM ${'`a`'}
SELECT 1 -- a comment
SELECT 1 # a comment
SELECT /* a comment */ 1
SELECT a COLLATE utf8mb4_bin FROM t
SELECT CURRENT_TIMESTAMP, CURRENT_USER(), DATABASE()
SELECT BINARY a = 'x' FROM t
SELECT FORMAT_BYTES(1024), INET_NTOA(1)
SELECT * FROM performance_schema.error_log ORDER BY LOGGED DESC LIMIT 20
`

const writes = String.raw`
INSERT INTO t VALUES (1)
INSERT INTO t SELECT 1
REPLACE INTO t VALUES (1)
UPDATE t SET a = 1
DELETE FROM t
TRUNCATE TABLE t
TRUNCATE t
DROP TABLE t
DROP DATABASE production
CREATE TABLE t (a INT)
CREATE TABLE t SELECT 1
CREATE TEMPORARY TABLE t (a INT)
ALTER TABLE t ADD b INT
RENAME TABLE t TO u
GRANT ALL ON *.* TO x
REVOKE ALL ON *.* FROM x
CREATE USER x
SET GLOBAL read_only = 0
SET @a = 1
SET PASSWORD = 'x'
SET PERSIST max_connections = 1
USE app
FLUSH TABLES
FLUSH PRIVILEGES
FLUSH TABLES WITH READ LOCK
RESET MASTER
RESET REPLICA ALL
PURGE BINARY LOGS TO 'x'
START REPLICA
STOP REPLICA
STOP SLAVE
START GROUP_REPLICATION
CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'
CHANGE MASTER TO MASTER_HOST='x'
KILL 5
KILL QUERY 5
SHUTDOWN
RESTART
LOCK TABLES t READ
UNLOCK TABLES
LOCK INSTANCE FOR BACKUP
BEGIN
START TRANSACTION
COMMIT
ROLLBACK
XA START 'x'
CALL p()
DO SLEEP(5)
DO RELEASE_LOCK('x')
HANDLER t OPEN
LOAD DATA INFILE '/etc/passwd' INTO TABLE t
LOAD XML INFILE 'x' INTO TABLE t
IMPORT TABLE FROM 'x'
INSTALL PLUGIN x SONAME 'y'
INSTALL COMPONENT 'x'
UNINSTALL PLUGIN x
CREATE FUNCTION x RETURNS INTEGER SONAME 'y'
OPTIMIZE TABLE t
REPAIR TABLE t
CHECK TABLE t
ANALYZE TABLE t
ANALYZE SELECT 1
PREPARE p FROM 'x'
EXECUTE p
EXECUTE IMMEDIATE 'DROP TABLE t'
SIGNAL SQLSTATE '45000'
BINLOG 'x'
CACHE INDEX t IN c
CLONE LOCAL DATA DIRECTORY = '/x'
ALTER INSTANCE ROTATE INNODB MASTER KEY
SELECT * INTO OUTFILE '/tmp/x' FROM t
SELECT * FROM t INTO OUTFILE '/tmp/x'
SELECT 'x' INTO DUMPFILE '/tmp/x'
SELECT a INTO @a FROM t
SELECT 1 INTO x
SELECT @a := 1
SELECT @a:=@a+1 FROM t
SELECT @a
SELECT * FROM t FOR UPDATE
SELECT * FROM t FOR SHARE
SELECT * FROM t LOCK IN SHARE MODE
SELECT * FROM t FOR UPDATE SKIP LOCKED
SELECT * FROM (SELECT * FROM t FOR UPDATE) x
SELECT * FROM t PROCEDURE ANALYSE()
SELECT SQL_CALC_FOUND_ROWS * FROM t
SELECT HIGH_PRIORITY * FROM t
WITH a AS (SELECT 1) DELETE FROM t
WITH a AS (SELECT 1) UPDATE t SET b = 1
EXPLAIN ANALYZE SELECT 1
EXPLAIN ANALYZE DELETE FROM t
EXPLAIN DELETE FROM t
EXPLAIN FORMAT=JSON INTO @x SELECT 1
DESC ANALYZE SELECT 1
SELECT SLEEP(10)
SELECT sleep (10)
SELECT ${'`sleep`'}(10)
SELECT BENCHMARK(1000000, MD5('a'))
SELECT LOAD_FILE('/etc/passwd')
SELECT load_file/* x */('/etc/passwd')
SELECT "load_file"('/etc/passwd')
SELECT GET_LOCK('a', 10)
SELECT RELEASE_LOCK('a')
SELECT RELEASE_ALL_LOCKS()
SELECT IS_FREE_LOCK('a')
SELECT LAST_INSERT_ID(5)
SELECT MASTER_POS_WAIT('x', 1)
SELECT SOURCE_POS_WAIT('x', 1)
SELECT WAIT_FOR_EXECUTED_GTID_SET('x')
SELECT sys_exec('reboot')
SELECT sys_eval('id')
SELECT my_function(1)
SELECT app.my_function(1)
SELECT sys.ps_setup_save(1)
SELECT group_replication_set_as_primary('x')
SELECT asynchronous_connection_failover_reset()
SELECT keyring_key_fetch('x')
SELECT 1 WHERE SLEEP(5)
SELECT 1 FROM t ORDER BY SLEEP(1)
SELECT 1 LIMIT 5, SLEEP(1)
SELECT COUNT(*) OVER (ORDER BY SLEEP(1)) FROM t
SELECT * FROM t JOIN u ON SLEEP(1)
SELECT * FROM t WHERE a IN (SLEEP(1))
SELECT CASE WHEN SLEEP(1) THEN 1 END
SELECT IF(1, SLEEP(1), 0)
SHOW VARIABLES WHERE SLEEP(1)
SHOW TABLES WHERE (SELECT SLEEP(1))
SELECT * FROM mysql.user
SELECT authentication_string FROM ${'`mysql`.`user`'}
SELECT * FROM MYSQL.USER
SELECT * FROM mysql . user
SELECT * FROM user
SELECT * FROM mysql.global_priv
SELECT * FROM mysql.slave_master_info
SELECT * FROM mysql.general_log
SELECT * FROM mysql.servers
TABLE mysql.user
DESC mysql.user
SELECT * FROM performance_schema.user_variables_by_thread
SELECT * FROM performance_schema.keyring_keys
SHOW GRANTS
SHOW GRANTS FOR root
SHOW CREATE USER root
SHOW CREATE TABLE t; DROP TABLE t
SHOW BINLOG EVENTS
SHOW PROFILE
SELECT 1; DROP TABLE t
SELECT 1\G DROP TABLE t
SELECT 1 /*! INTO OUTFILE '/tmp/x' */
SELECT /*!50000 SLEEP(5) */ 1
/*!DROP TABLE t*/
SELECT /*+ SET_VAR(max_execution_time=0) */ 1
SELECT /*M! SLEEP(5) */ 1
SELECT 1 /* ; DROP TABLE t */
SELECT 1 /* open
SELECT 1 -- it's
SELECT 1 --1
SELECT 'a\'; DROP TABLE t; -- '
SELECT 'open
SELECT ${'`open'}
SELECT 1 \! reboot
\! reboot
\. /tmp/x.sql
system reboot
SYSTEM reboot
source /tmp/x.sql
tee /tmp/x
notee
pager sh
nopager
edit
delimiter //
connect app
exit
help
status
SELECT {d '2026-01-01'}
SELECT ?
SELECT :a
SELECT $1
SELECT ä FROM t
SELECT 1 AS
SELECT
SELECT * FROM
SELECT * FROM f(1)
SELECT * FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$')) x
SELECT MATCH (a) AGAINST ('x')
SELECT NEXT VALUE FOR s
SELECT 1 FROM t WHERE
SELECT 1abc
;
-- nothing
ATTACH 'x' AS y
`

const table = (text: string) => text.trim().split('\n')

test.each(table(reads))('read: %s', (text) => {
  expect(inspectSql('mysql', text)).toMatchObject({ readOnly: true })
})

test.each(table(writes))('not a read: %s', (text) => {
  expect(inspectSql('mysql', text)).toMatchObject({ readOnly: false })
})

test.each([
  ['SELECT 1;\nsystem reboot', 'client command SYSTEM'],
  ['SELECT a\ntee FROM t', 'client command TEE'],
  ['SELECT LOAD_FILE(1)', 'function load_file'],
  ['SELECT * FROM t FOR UPDATE', 'token FOR'],
  ['SELECT 1 INTO OUTFILE "/x"', 'token INTO'],
  ['SELECT * FROM mysql.user', 'table user'],
  ['SELECT /*!50000 1*/', 'comment /*!5'],
  ['DROP TABLE t', 'statement DROP'],
  ['SHOW GRANTS', 'SHOW GRANTS'],
  [`SELECT ${'('.repeat(500)}1${')'.repeat(500)}`, 'nested too deep'],
])('the reason for %j names what decided', (text, reason) => {
  expect(inspectSql('mysql', text)).toEqual({ readOnly: false, reason })
})

/** Before, each of these was a read: joins that join nothing, texts of a gigabyte, code and values. */
const openings = `
SELECT count(*) FROM a, b
SELECT count(*) FROM a CROSS JOIN b
SELECT count(*) FROM a JOIN b
SELECT count(*) FROM a JOIN b ON 1
SELECT count(*) FROM a JOIN b ON a.x > 0
SELECT count(*) FROM a JOIN b ON a.x = a.y
SELECT count(*) FROM a, b WHERE a.x = b.x OR 1
SELECT count(*) FROM a, b WHERE a.x * 0 = b.x * 0
SELECT count(*) FROM a, b WHERE (a.x = b.x) IS NOT NULL
SELECT count(*) FROM a, b WHERE NOT a.x = b.x
SELECT count(*) FROM a, b WHERE a.x <> b.x
SELECT count(*) FROM a, b WHERE a.x = 1 AND b.y = 1
SELECT count(*) FROM a, b, c WHERE a.x = b.x
SELECT count(*) FROM a, b, c WHERE a.x = b.x AND b.x = a.x
SELECT * FROM a NATURAL JOIN b
SELECT count(*) FROM (SELECT * FROM a) x, (SELECT * FROM b) y
SELECT 1 WHERE EXISTS (SELECT 1 FROM a, b)
WITH x AS (SELECT * FROM a) SELECT count(*) FROM x, x y
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n > 0) SELECT count(*) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5 OR 1) SELECT count(*) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100000000000) SELECT count(*) FROM t
SELECT repeat('x', 1000000000)
SELECT repeat('x', a) FROM t
SELECT space(1000000000)
SELECT lpad('x', 1000000000, 'y')
SELECT routine_definition FROM information_schema.routines
SELECT * FROM information_schema.routines
SELECT event_definition FROM information_schema.events
SELECT t.* FROM information_schema.triggers t
SELECT histogram FROM information_schema.column_statistics
`

test.each(table(openings))('no longer a read: %s', (text) => {
  expect(inspectSql('mysql', text)).toMatchObject({ readOnly: false })
})

/** What joins, counts and repeats within a bound. */
const bounded = `
SELECT count(*) FROM a JOIN b ON a.id = b.a_id WHERE a.x = 1 OR b.y = 2
SELECT count(*) FROM a, b WHERE a.id = b.a_id AND (a.x = 1 OR b.y = 2)
SELECT count(*) FROM a JOIN b USING (id) LEFT JOIN c ON c.id = b.id
SELECT count(*) FROM a x, b y WHERE x.id = y.id
SELECT count(*) FROM a, b WHERE a_id = id
SELECT x, total FROM a, (SELECT count(*) AS total FROM b) t
SELECT x, m FROM a CROSS JOIN (SELECT max(x) AS m FROM a) t
WITH m AS (SELECT max(x) AS v FROM a) SELECT x, v FROM a, m
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT n FROM t
WITH RECURSIVE t AS (SELECT id FROM a UNION ALL SELECT c.id FROM a c JOIN t ON c.parent = t.id) SELECT * FROM t
SELECT repeat('=', 20), lpad(user, 16, ' ') FROM t
SELECT routine_name, routine_type FROM information_schema.routines
SELECT p.id, t.trx_state FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
SELECT count(*) FROM information_schema.events
SELECT digest_text, count_star FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_timer_wait DESC LIMIT 10
SELECT thread_id, sql_text FROM performance_schema.events_statements_current
`

test.each(table(bounded))('a bounded read: %s', (text) => {
  expect(inspectSql('mysql', text)).toMatchObject({ readOnly: true })
})
