import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { inspectSql, loadSql } from '../../../safety/sql/inspect.ts'

const reads = readFileSync('test/data/sql/postgres.txt', 'utf8')

const writes = String.raw`
insert into t values (1)
UPDATE t SET a = 1
DELETE FROM t
TRUNCATE t
DROP TABLE t
DROP DATABASE production
CREATE TABLE t (a int)
CREATE TABLE t AS SELECT 1
CREATE INDEX CONCURRENTLY i ON t (a)
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'select 1'
CREATE VIEW v AS SELECT 1
ALTER TABLE t ADD b int
ALTER SYSTEM SET max_connections = 10
ALTER ROLE app SUPERUSER
GRANT ALL ON t TO public
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE
VACUUM
VACUUM FULL t
ANALYZE t
REINDEX TABLE t
CLUSTER t
CHECKPOINT
LOCK TABLE t
COPY t TO '/tmp/x'
COPY (SELECT 1) TO PROGRAM 'sh'
COPY t FROM '/etc/passwd'
COPY (SELECT 1) TO STDOUT
DO $$ BEGIN PERFORM 1; END $$
CALL p()
PREPARE p AS SELECT 1
EXECUTE p
DEALLOCATE p
DECLARE c CURSOR FOR SELECT 1
FETCH c
LISTEN x
NOTIFY x
LOAD 'x'
DISCARD ALL
SET work_mem = '1GB'
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
RESET ALL
BEGIN
COMMIT
ROLLBACK
COMMIT; SELECT 1
SELECT 1; DROP TABLE t
SELECT 1; COMMIT; SELECT 2
BEGIN READ WRITE
SET TRANSACTION READ WRITE
SAVEPOINT a
REFRESH MATERIALIZED VIEW v
COMMENT ON TABLE t IS 'x'
SECURITY LABEL ON TABLE t IS 'x'
IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y
REASSIGN OWNED BY a TO b
SELECT * INTO t2 FROM t
SELECT 1 INTO TEMP t2
SELECT * FROM t FOR UPDATE
SELECT * FROM t FOR SHARE
SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED
SELECT * FROM (SELECT * FROM t FOR UPDATE) x
WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d
WITH d AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM d
WITH d AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM d
WITH d AS (SELECT 1) DELETE FROM t
SELECT * FROM (WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d) x
EXPLAIN ANALYZE SELECT 1
EXPLAIN ANALYZE DELETE FROM t
EXPLAIN (ANALYZE) SELECT 1
EXPLAIN (ANALYZE false) SELECT 1
EXPLAIN (VERBOSE, ANALYZE true) DELETE FROM t
EXPLAIN DELETE FROM t
EXPLAIN EXECUTE p
EXPLAIN CREATE TABLE t AS SELECT 1
SELECT pg_terminate_backend(1)
SELECT pg_cancel_backend(1)
select PG_TERMINATE_BACKEND(1)
SELECT "pg_terminate_backend"(1)
SELECT pg_catalog.pg_terminate_backend(1)
SELECT pg_terminate_backend /* x */ (1)
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
SELECT 1 WHERE pg_terminate_backend(1)
SELECT 1 ORDER BY pg_sleep(1)
SELECT 1 LIMIT pg_sleep(1)
SELECT CASE WHEN pg_reload_conf() THEN 1 END
SELECT * FROM a JOIN b ON pg_terminate_backend(1)
SELECT count(*) FILTER (WHERE pg_terminate_backend(1)) FROM t
SELECT sum(x) OVER (ORDER BY pg_sleep(1)) FROM t
SELECT pg_read_file('/etc/passwd')
SELECT pg_read_binary_file('/etc/passwd')
SELECT pg_ls_dir('/')
SELECT * FROM pg_ls_dir('/')
SELECT * FROM pg_ls_logdir()
SELECT pg_stat_file('/etc/passwd')
SELECT pg_reload_conf()
SELECT pg_rotate_logfile()
SELECT pg_promote()
SELECT pg_switch_wal()
SELECT pg_create_restore_point('x')
SELECT pg_backup_start('x')
SELECT pg_wal_replay_pause()
SELECT pg_wal_replay_resume()
SELECT pg_sleep(10)
SELECT pg_sleep_for('1 hour')
SELECT pg_advisory_lock(1)
SELECT pg_try_advisory_lock(1)
SELECT pg_advisory_unlock_all()
SELECT pg_create_physical_replication_slot('x')
SELECT pg_drop_replication_slot('x')
SELECT pg_replication_slot_advance('x', '0/0')
SELECT pg_logical_emit_message(true, 'a', 'b')
SELECT * FROM pg_logical_slot_get_changes('x', NULL, NULL)
SELECT * FROM pg_logical_slot_peek_changes('x', NULL, NULL)
SELECT set_config('role', 'postgres', false)
SELECT nextval('s')
SELECT setval('s', 1)
SELECT currval('s')
SELECT lo_import('/etc/passwd')
SELECT lo_export(1, '/tmp/x')
SELECT lo_unlink(1)
SELECT dblink('host=x', 'select 1')
SELECT dblink_exec('drop table t')
SELECT query_to_xml('delete from t returning *', true, true, '')
SELECT database_to_xml(true, true, '')
SELECT table_to_xml('t', true, true, '')
SELECT ts_stat('delete from t returning a')
SELECT * FROM ts_stat('select 1')
SELECT pg_notify('a', 'b')
SELECT pg_export_snapshot()
SELECT pg_stat_reset()
SELECT pg_stat_statements_reset()
SELECT pg_stat_reset_shared('io')
SELECT pg_stat_clear_snapshot()
SELECT pg_file_write('/tmp/x', 'a', false)
SELECT pg_prewarm('t')
SELECT pg_extension_config_dump('t', '')
SELECT pg_import_system_collations('x')
SELECT pg_restore_relation_stats('relation', 'x')
SELECT pg_log_backend_memory_contexts(1)
SELECT txid_current()
SELECT pg_current_xact_id()
SELECT my_function(1)
SELECT public.count(1)
SELECT public.now()
SELECT app.refresh()
SELECT t.refresh() FROM t
SELECT current_setting('primary_conninfo')
SELECT current_setting(a) FROM t
SHOW primary_conninfo
SELECT 1 OPERATOR(public.+) 2
SELECT a <<->> b FROM t
SELECT 'x'::my_domain
SELECT 'x'::public.text
SELECT * FROM t TABLESAMPLE evil(1)
SELECT * FROM pg_authid
SELECT rolpassword FROM pg_catalog.pg_authid
SELECT * FROM pg_shadow
SELECT * FROM "pg_shadow"
SELECT * FROM pg_user_mapping
SELECT * FROM pg_user_mappings
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_file_settings
SELECT subconninfo FROM pg_subscription
SELECT * FROM information_schema.user_mapping_options
SELECT data FROM pg_largeobject
SELECT 1 WHERE EXISTS (SELECT 1 FROM pg_shadow)
TABLE pg_authid
SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) f
SELECT f.pg_terminate_backend FROM unnest(ARRAY[1]) AS f
SELECT f.pg_terminate_backend FROM unnest(ARRAY[1]) AS f(pid)
SELECT f.my_function FROM generate_series(1, 2) f
SELECT generate_series.pg_sleep FROM generate_series(1, 2)
SELECT unnest.pg_sleep FROM unnest(ARRAY[1])
SELECT x FROM unnest(ARRAY[1]) f ORDER BY f.pg_sleep
SELECT pg_read_file.pg_read_file FROM json_array_elements_text('["/etc/passwd"]') pg_read_file
SELECT pg_sleep.pg_sleep FROM unnest(ARRAY[1]) pg_sleep(x)
SELECT f.g FROM unnest(ARRAY[1]) f, (SELECT 1 FROM unnest(ARRAY[2]) f(g)) y
SELECT coalesce.pg_read_file FROM coalesce('/etc/passwd'::text)
SELECT text.pg_read_file FROM CAST('/etc/passwd' AS text)
SELECT (1).pg_sleep
SELECT ('/etc/passwd'::text).pg_read_file
SELECT t.pg_restore_relation_stats FROM pg_class t
SELECT a[1:x] FROM t
SELECT :x
SELECT :'x'
\! reboot
\copy t to '/tmp/x'
\o |sh
\i /tmp/x.sql
\l
SELECT 1 \g |sh
SELECT 1 \! reboot
SELECT 1; \! reboot
SELECT 'a\'; DROP TABLE t; --'
SELECT E'a\'b'
SELECT U&"pg!005fsleep" UESCAPE '!' (1)
SELECT 1 FROM
SELEC 1
select 1 from t where
;
-- nothing
/* nothing */
DROP TABLE t -- SELECT
`

/**
 * Before, 54 of these 57 were a read: values under another name, joins that join nothing, and what
 * is made of nothing.
 */
const openings = `
show all
SHOW app.jwt_secret
SELECT current_setting('app.jwt_secret')
SELECT * FROM pg_settings
TABLE pg_settings
SELECT setting FROM pg_settings WHERE name = 'primary_conninfo'
SELECT setting FROM pg_settings WHERE name IN ('work_mem', 'archive_command')
SELECT setting FROM pg_settings WHERE name LIKE '%conninfo%'
SELECT setting FROM pg_settings WHERE name LIKE 'app.%'
SELECT setting FROM pg_settings WHERE name LIKE '%_%'
SELECT setting FROM pg_settings WHERE name <> 'x'
SELECT setting FROM pg_settings WHERE name = 'work_mem' OR source = 'file'
SELECT name FROM pg_settings WHERE setting LIKE 'host=%'
SELECT s FROM pg_settings s
SELECT to_json(pg_settings) FROM pg_settings
SELECT j.reset_val FROM (pg_settings s JOIN pg_database d ON d.datname = s.name) AS j
SELECT b FROM pg_settings AS s(a, b)
SELECT x.v FROM pg_settings s, LATERAL (SELECT s.boot_val AS v) x
SELECT name FROM pg_settings ORDER BY setting
SELECT * FROM pg_show_all_settings()
SELECT setting FROM pg_show_all_settings() WHERE name = 'primary_conninfo'
SELECT setconfig FROM pg_db_role_setting
SELECT * FROM pg_roles
SELECT rolname, rolconfig FROM pg_roles
SELECT ftoptions FROM pg_foreign_table
SELECT attfdwoptions FROM pg_attribute
SELECT command FROM cron.job
SELECT * FROM cron.job_run_details
SELECT prosrc FROM pg_proc
SELECT routine_definition FROM information_schema.routines
SELECT pg_get_functiondef(oid) FROM pg_proc
SELECT most_common_vals FROM pg_stats
SELECT (s).histogram_bounds FROM pg_stats s
SELECT * FROM pg_statistic
SELECT 1 FROM pg_stats NATURAL JOIN x
SELECT * FROM a NATURAL JOIN b
SELECT count(*) FROM a JOIN b ON true
SELECT count(*) FROM a JOIN b ON a.x = a.y
SELECT count(*) FROM a, b WHERE a.x > 0
SELECT count(*) FROM a, b WHERE a.x = 1 AND b.y = 1
SELECT count(*) FROM a, b WHERE a.x = b.x OR true
SELECT count(*) FROM (SELECT * FROM a) x, (SELECT * FROM b) y
SELECT count(*) FROM a, (SELECT x FROM b GROUP BY x) y
SELECT count(*) FROM pg_class a, pg_class b, pg_class c WHERE a.oid <> b.oid
SELECT count(*) FROM a, b, c WHERE a.x = b.x
SELECT count(*) FROM a JOIN b ON a.x * 0 = b.x * 0
SELECT count(*) FROM a CROSS JOIN LATERAL (SELECT * FROM b) l
WITH x AS (SELECT * FROM a) SELECT count(*) FROM x, x y
SELECT 1 WHERE EXISTS (SELECT 1 FROM a, b WHERE a.x < b.x)
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE true) SELECT n FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n > 0) SELECT n FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n - 1 FROM t WHERE n < 5) SELECT n FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t, x) SELECT n FROM t
SELECT lpad('x', 1000000000)
SELECT rpad('x', a) FROM t
SELECT format('%1000000000s', 'x')
SELECT format('%*s', 1000000000, 'x')
`

const table = (text: string) => text.trim().split('\n')

const readTable = table(reads)

const writeTable = table(writes)

const openingTable = table(openings)

test('nothing is a read before the parser is loaded', () => {
  // Only this file's first test can see that state: the module is loaded once.
  expect(inspectSql('postgres', 'SELECT 1')).toEqual({ readOnly: false, reason: 'the parser is not loaded' })
})

describe('loaded', () => {
  beforeAll(() => loadSql())

  test.each(readTable)('read: %s', (text) => {
    expect(inspectSql('postgres', text)).toMatchObject({ readOnly: true })
  })

  test.each(writeTable)('not a read: %s', (text) => {
    expect(inspectSql('postgres', text)).toMatchObject({ readOnly: false })
  })

  test.each(openingTable)('no longer a read: %s', (text) => {
    expect(inspectSql('postgres', text)).toMatchObject({ readOnly: false })
  })

  test.each([
    ['SELECT pg_terminate_backend(1)', 'function pg_terminate_backend'],
    ['WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d', 'WITH DeleteStmt'],
    ['SELECT * FROM t FOR UPDATE', 'SelectStmt.lockingClause'],
    ['SELECT 1 INTO t', 'SelectStmt.intoClause'],
    ['EXPLAIN ANALYZE SELECT 1', 'EXPLAIN analyze'],
    ['SELECT * FROM pg_shadow', 'relation pg_shadow'],
    ['DROP TABLE t', 'DropStmt'],
    ['SELECT 1 \\! reboot', 'a backslash'],
    ['SELECT f.pg_read_file FROM unnest(ARRAY[1]) f', 'column f.pg_read_file may call pg_read_file'],
  ])('the reason for %s names the deciding part', (text, reason) => {
    expect(inspectSql('postgres', text).reason).toBe(reason)
  })

  test.each([
    ['U+0000, where the parser stops reading', 'SELECT 1\u0000; DROP TABLE t'],
    ['a carriage return', 'SELECT 1 -- x\rDROP TABLE t'],
    ['a bidi override', "SELECT '\u202e'"],
    ['a zero-width space', 'SELECT\u200b 1'],
    ['a tag character', 'SELECT 1 \u{e0041}'],
    ['a lone surrogate', "SELECT '\ud800'"],
    ['more than anybody types', `SELECT 1 -- ${'x'.repeat(20_001)}`],
    ['a nest nobody closed', `SELECT ${'('.repeat(9000)}1`],
    ['a nest of calls', `SELECT ${'abs('.repeat(3000)}1${')'.repeat(3000)}`],
    ['empty text', ''],
  ])('%s is not a read', (_, text) => {
    expect(inspectSql('postgres', text).readOnly).toBe(false)
  })

  test('after a text that exhausts the parser it still reads the next one', () => {
    inspectSql('postgres', `SELECT ${'- '.repeat(9000)}1`)
    expect(inspectSql('postgres', 'SELECT 1').readOnly).toBe(true)
  })
})
