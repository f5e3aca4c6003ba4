import { expect, test } from '@jest/globals'
import { inspectSql } from '../../../safety/sql/inspect.ts'

const reads = `
SELECT 1
SELECT 1;
SELECT sqlite_version()
SELECT * FROM sqlite_master
SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name
SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'
SELECT count(*) FROM orders
SELECT count(DISTINCT a), sum(b), total(c), group_concat(d, ', ') FROM t
SELECT * FROM orders WHERE id = 1 LIMIT 10 OFFSET 5
SELECT * FROM main.orders
SELECT o.id, u.name FROM orders o JOIN users AS u ON u.id = o.user_id
SELECT * FROM a LEFT OUTER JOIN b USING (id)
SELECT * FROM a NATURAL JOIN (SELECT 1 AS x) b CROSS JOIN c ON c.id = a.id
SELECT * FROM orders INDEXED BY i WHERE a = 1
SELECT * FROM orders NOT INDEXED
SELECT * FROM (SELECT 1 AS a)
SELECT (SELECT max(id) FROM t), EXISTS (SELECT 1 FROM t)
SELECT * FROM t WHERE id IN (1, 2) AND a NOT IN (SELECT b FROM u)
SELECT * FROM t WHERE id IN u
SELECT * FROM t WHERE a LIKE 'x%' ESCAPE '!' OR b GLOB 'y*' OR c REGEXP 'z' OR d MATCH 'q'
SELECT * FROM t WHERE a ISNULL OR b NOTNULL OR c NOT NULL OR d IS NOT NULL
SELECT * FROM t WHERE a IS NOT DISTINCT FROM b
SELECT * FROM t WHERE a BETWEEN 1 AND 2
SELECT CASE WHEN a THEN b ELSE c END FROM t
SELECT coalesce(a, b), ifnull(a, 0), iif(a, 1, 2), replace(a, 'x', 'y') FROM t
SELECT CAST(a AS TEXT), CAST(b AS DECIMAL(10, 2)) FROM t
SELECT datetime('now'), strftime('%s', 'now'), unixepoch()
SELECT json_extract(doc, '$.a'), doc -> 'b' ->> 'c' FROM t
SELECT value FROM json_each('[1, 2]')
SELECT value FROM generate_series(1, 10)
SELECT name, type FROM pragma_table_info('orders')
SELECT * FROM pragma_database_list
SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t
SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
SELECT count(*) FILTER (WHERE a > 1) FROM t
SELECT a FROM t GROUP BY a HAVING count(*) > 1 ORDER BY 1 DESC NULLS LAST
SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT SELECT c FROM v
WITH a AS (SELECT 1 AS x) SELECT x FROM a
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 5) SELECT * FROM r
WITH a AS NOT MATERIALIZED (SELECT 1) SELECT * FROM a
VALUES (1, 2), (3, 4)
EXPLAIN SELECT 1
EXPLAIN QUERY PLAN SELECT * FROM orders
SELECT "drop" FROM "select"
SELECT [drop] FROM [select]
SELECT 'DROP TABLE users'
SELECT 'it''s'
SELECT 'a; b'
SELECT x'41', 0x41, 1.5e3, .5
SELECT -a, +b, ~c, NOT d, a || b, a == b, a <> b, a << 1, a % 2 FROM t
SELECT a COLLATE NOCASE FROM t
SELECT 1 -- a comment
SELECT /* a comment */ 1
SELECT 1; SELECT 2
PRAGMA table_info(orders)
PRAGMA table_info('orders')
PRAGMA main.table_info(orders)
PRAGMA table_xinfo(orders)
PRAGMA index_list(orders);
PRAGMA index_info(i)
PRAGMA foreign_key_list(orders)
PRAGMA foreign_key_check
PRAGMA integrity_check
PRAGMA integrity_check(10)
PRAGMA quick_check
PRAGMA database_list
PRAGMA table_list
PRAGMA page_count
PRAGMA page_size
PRAGMA freelist_count
PRAGMA journal_mode
PRAGMA user_version
PRAGMA schema_version
PRAGMA compile_options
PRAGMA encoding
PRAGMA cache_size
PRAGMA synchronous
PRAGMA foreign_keys
PRAGMA busy_timeout
.tables
.tables ord%
.schema
.schema orders
.databases
.indexes
.dbinfo
.version
`

const writes = String.raw`
INSERT INTO t VALUES (1)
INSERT OR REPLACE INTO t VALUES (1)
REPLACE INTO t VALUES (1)
UPDATE t SET a = 1
DELETE FROM t
DROP TABLE t
CREATE TABLE t (a)
CREATE TABLE t AS SELECT 1
CREATE TEMP TABLE t (a)
CREATE VIRTUAL TABLE t USING csv(filename='/etc/passwd')
CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END
ALTER TABLE t ADD b
ATTACH '/etc/cron.d/x' AS x
ATTACH DATABASE 'x' AS y
DETACH x
VACUUM
VACUUM INTO '/tmp/x'
REINDEX
ANALYZE
BEGIN
BEGIN IMMEDIATE
COMMIT
END
ROLLBACK
SAVEPOINT a
RELEASE a
SELECT 1; DROP TABLE t
WITH a AS (SELECT 1) DELETE FROM t
WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a
WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a
EXPLAIN DELETE FROM t
EXPLAIN QUERY PLAN UPDATE t SET a = 1
SELECT load_extension('x')
SELECT LOAD_EXTENSION('x')
SELECT "load_extension"('x')
SELECT [load_extension]('x')
SELECT load_extension /* x */ ('x')
SELECT readfile('/etc/passwd')
SELECT writefile('/tmp/x', 'y')
SELECT edit('x')
SELECT fts3_tokenizer('x', x'41')
SELECT zipfile('a', 'b')
SELECT sqlar_compress('x')
SELECT eval('drop table t')
SELECT sha3_query('select 1')
SELECT randomblob(1000000000)
SELECT zeroblob(1000000000)
SELECT my_function(1)
SELECT main.abs(1)
SELECT 1 WHERE writefile('/tmp/x', 'y')
SELECT 1 ORDER BY writefile('/tmp/x', 'y')
SELECT 1 LIMIT writefile('/tmp/x', 'y')
SELECT count(*) FILTER (WHERE writefile('a', 'b')) FROM t
SELECT sum(a) OVER (ORDER BY writefile('a', 'b')) FROM t
SELECT CASE WHEN writefile('a', 'b') THEN 1 END
SELECT * FROM t WHERE a IN (writefile('a', 'b'))
SELECT * FROM t WHERE a IN readfile('x')
SELECT * FROM fsdir('/etc')
SELECT * FROM fsdir WHERE path = '/etc'
SELECT * FROM zipfile('x.zip')
SELECT * FROM sqlite_dbpage
SELECT * FROM pragma_writable_schema
SELECT * FROM pragma_optimize
SELECT * FROM pragma_wal_checkpoint('TRUNCATE')
SELECT * FROM json_each(writefile('a', 'b'))
PRAGMA journal_mode = DELETE
PRAGMA journal_mode(WAL)
PRAGMA user_version = 5
PRAGMA user_version(5)
PRAGMA writable_schema = ON
PRAGMA writable_schema
PRAGMA wal_checkpoint
PRAGMA wal_checkpoint(TRUNCATE)
PRAGMA optimize
PRAGMA incremental_vacuum
PRAGMA shrink_memory
PRAGMA synchronous = OFF
PRAGMA foreign_keys = OFF
PRAGMA secure_delete = ON
PRAGMA temp_store_directory = '/x'
PRAGMA key = 'x'
PRAGMA rekey = 'x'
PRAGMA table_info = t
PRAGMA cache_size(5)
PRAGMA unknown
PRAGMA main.journal_mode = OFF
.shell reboot
.system reboot
.read /tmp/x
.import /etc/passwd t
.output /tmp/x
.output |sh
.once /tmp/x
.excel
.open /tmp/x
.save /tmp/x
.backup /tmp/x
.restore /tmp/x
.clone /tmp/x
.load /tmp/x
.log /tmp/x
.dump
.cd /tmp
.archive -c
.recover
.sha3sum
.trace /tmp/x
.tables | sh
.schema ; .shell reboot
.param set a 1
.mode insert
.testctrl
.filectrl
.crnl off
  .shell reboot
# comment
SELECT :a
SELECT ?1
SELECT @a
SELECT $a
SELECT 1 -- it's
SELECT 1 /* open
SELECT 'open
SELECT "open
SELECT [open
SELECT 1 \! reboot
SELECT ä FROM t
SELECT 1 INTO x
SELECT RAISE(ABORT, 'x')
SELECT * FROM
SELECT
;
-- nothing
SHOW TABLES
COPY t TO 'x'
`

const table = (text: string) => text.replace(/^\n/, '').trimEnd().split('\n')

test.each(table(reads))('read: %s', (text) => {
  expect(inspectSql('sqlite', text)).toMatchObject({ readOnly: true })
})

test.each(table(writes))('not a read: %s', (text) => {
  expect(inspectSql('sqlite', text)).toMatchObject({ readOnly: false })
})

test('harmless commands of the shell may come first, none later', () => {
  expect(inspectSql('sqlite', '.headers on\n.mode column\nSELECT 1').readOnly).toBe(true)
  expect(inspectSql('sqlite', 'SELECT 1;\n.shell reboot').readOnly).toBe(false)
  expect(inspectSql('sqlite', 'SELECT 1\n.tables').readOnly).toBe(false)
  expect(inspectSql('sqlite', '.tables\n.shell reboot').readOnly).toBe(false)
})

test('a long name is one name', () => {
  expect(inspectSql('sqlite', `SELECT ${'x'.repeat(130)}IN(1)`).readOnly).toBe(false)
  expect(inspectSql('sqlite', `SELECT ${'1'.repeat(200)}`).readOnly).toBe(true)
})

test.each([
  ["SELECT writefile('a', 'b')", 'function writefile'],
  ["ATTACH 'x' AS y", 'statement ATTACH'],
  ['PRAGMA user_version = 5', 'PRAGMA user_version ='],
  ['.shell reboot', 'shell command .shell reboot'],
])('the reason for %s names the deciding part', (text, reason) => {
  expect(inspectSql('sqlite', text)).toEqual({ readOnly: false, reason })
})

/**
 * Before, each of these was a read: joins that join nothing, recursions that need no RECURSIVE,
 * texts of a gigabyte.
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
WITH t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t
SELECT printf('%2000000000d', 1)
SELECT format('%*d', 2000000000, 1)
`

test.each(table(openings))('no longer a read: %s', (text) => {
  expect(inspectSql('sqlite', text)).toMatchObject({ readOnly: false })
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
SELECT printf('%-20s|%5d', name, n) FROM t
WITH t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t LIMIT 100) SELECT n FROM t
`

test.each(table(bounded))('a bounded read: %s', (text) => {
  expect(inspectSql('sqlite', text)).toMatchObject({ readOnly: true })
})
