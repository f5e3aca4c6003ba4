import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { inspectSql } from '../../../safety/sql/inspect.ts'

const reads = readFileSync('test/data/sql/mysql.txt', 'utf8')

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
])('the reason for %j names the deciding part', (text, reason) => {
  expect(inspectSql('mysql', text)).toEqual({ readOnly: false, reason })
})

/**
 * Before, each of these was a read: joins that join nothing, texts of a gigabyte, code and values.
 */
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
