import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { inspectSql, loadSql, type SqlDialect } from '../../../safety/sql/inspect.ts'

const dialects: SqlDialect[] = ['postgres', 'mysql', 'sqlite']
const dialect = fc.constantFrom(...dialects)

/** Texts already cut into tokens, so that anything may stand between two. */
const writes: [SqlDialect, string][] = [
  ['postgres', 'DROP TABLE t'],
  ['postgres', 'SELECT pg_terminate_backend ( 1 )'],
  ['postgres', 'SELECT * FROM t FOR UPDATE'],
  ['postgres', 'SELECT a INTO b FROM t'],
  ['postgres', 'WITH d AS ( DELETE FROM t RETURNING * ) SELECT * FROM d'],
  ['postgres', 'EXPLAIN ANALYZE SELECT 1'],
  ['postgres', 'SELECT f . pg_read_file FROM unnest ( a ) f'],
  ['postgres', 'SELECT 1 ; COMMIT ; SELECT 2'],
  ['postgres', "COPY t TO PROGRAM 'sh'"],
  ['mysql', 'DROP TABLE t'],
  ['mysql', "SELECT * FROM t INTO OUTFILE '/tmp/x'"],
  ['mysql', 'SELECT sleep ( 1 )'],
  ['mysql', 'SELECT * FROM t FOR UPDATE'],
  ['mysql', 'SELECT * FROM t LOCK IN SHARE MODE'],
  ['mysql', 'SELECT * FROM mysql . user'],
  ['mysql', 'WITH a AS ( SELECT 1 ) DELETE FROM t'],
  ['mysql', 'SELECT 1 ; KILL 5'],
  ['mysql', 'EXPLAIN ANALYZE SELECT 1'],
  ['sqlite', 'DROP TABLE t'],
  ['sqlite', "SELECT writefile ( 'a' , 'b' )"],
  ['sqlite', "ATTACH 'x' AS y"],
  ['sqlite', 'PRAGMA user_version = 5'],
  ['sqlite', 'WITH a AS ( SELECT 1 ) DELETE FROM t'],
  ['sqlite', 'SELECT 1 ; VACUUM'],
]
const reads: [SqlDialect, string][] = [
  ['postgres', 'SELECT count ( * ) FROM pg_stat_activity WHERE state = 1'],
  ['postgres', 'WITH a AS ( SELECT 1 ) SELECT * FROM a ; SHOW max_connections'],
  ['mysql', 'SHOW REPLICA STATUS'],
  ['mysql', 'SELECT count ( * ) FROM t WHERE a = 1 ORDER BY b LIMIT 5'],
  ['sqlite', 'SELECT count ( * ) FROM t WHERE a IN ( 1 , 2 )'],
  ['sqlite', 'PRAGMA table_info ( t )'],
]
const between = fc.constantFrom(' ', '  ', '\t', '\n', ' -- x\n', '/* x */', ' /**/ ', ' -- SELECT 1\n', '/* y\n */')
const gaps = fc.array(between, { minLength: 12, maxLength: 12 })

function spread(text: string, fillers: string[]): string {
  return text
    .split(' ')
    .map((token, index) => (index === 0 ? token : fillers[index % fillers.length] + token))
    .join('')
}

/** Pieces of all three languages and of their clients, for texts that almost parse. */
const pieces = fc.constantFrom(
  ...'SELECT select FROM WHERE ( ) , ; * . a t 1 \'x\' "x" `x` [x] WITH AS INTO FOR UPDATE DELETE DROP TABLE UNION'.split(
    ' ',
  ),
  ..."EXPLAIN SHOW PRAGMA = := :: -> @@ @ \\ \\G \\! -- # /* */ /*! $$ E' CASE WHEN END IN NOT sleep pg_sleep count".split(
    ' ',
  ),
  ...' \n \t \u0000 \r ä \u202e'.split(' '),
  ' ',
)

describe('any inspector', () => {
  beforeAll(() => loadSql())

  test('answers for every text and never throws', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(' ')),
      fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(dialect, text, (which, sql) => {
        const found = inspectSql(which, sql)
        expect(typeof found.readOnly).toBe('boolean')
        expect(found.reason.length).toBeGreaterThan(0)
      }),
      { numRuns: 5000 },
    )
  })

  test('is total even for what its types exclude', () => {
    expect(inspectSql('oracle' as SqlDialect, 'SELECT 1').readOnly).toBe(false)
    expect(inspectSql('__proto__' as SqlDialect, 'SELECT 1').readOnly).toBe(false)
    expect(inspectSql('mysql', undefined as unknown as string).readOnly).toBe(false)
  })

  test('blanks and comments between tokens never turn a write into a read', () => {
    fc.assert(
      fc.property(fc.constantFrom(...writes), gaps, ([which, text], fillers) => {
        expect(inspectSql(which, spread(text, fillers))).toMatchObject({ readOnly: false })
      }),
      { numRuns: 3000 },
    )
  })

  test('blanks and comments never turn a read into a write', () => {
    fc.assert(
      fc.property(fc.constantFrom(...reads), gaps, ([which, text], fillers) => {
        expect(inspectSql(which, spread(text, fillers))).toMatchObject({ readOnly: true })
      }),
      { numRuns: 2000 },
    )
  })

  test('a write among reads is a write, at any place', () => {
    const several = fc.tuple(fc.constantFrom(...writes), fc.nat(3), fc.nat(3))
    fc.assert(
      fc.property(several, ([[which, write], before, after]) => {
        const text = [...Array(before).fill('SELECT 1'), write, ...Array(after).fill('SELECT 1')].join(' ; ')
        expect(inspectSql(which, text)).toMatchObject({ readOnly: false })
      }),
      { numRuns: 1000 },
    )
  })

  test.each([
    'SELECT §',
    'SELECT abs(§)',
    'SELECT a, § FROM t',
    'SELECT a FROM t WHERE §',
    'SELECT a FROM t WHERE b = 1 AND NOT (§)',
    'SELECT a FROM t GROUP BY §',
    'SELECT a FROM t GROUP BY a HAVING § > 1',
    'SELECT a FROM t ORDER BY a, § DESC',
    'SELECT a FROM t LIMIT §',
    'SELECT a FROM t JOIN u ON t.a = u.a AND §',
    'SELECT a FROM (SELECT § AS a) x',
    'SELECT (SELECT §)',
    'SELECT a FROM t WHERE EXISTS (SELECT §)',
    'SELECT a FROM t WHERE a IN (1, §)',
    'SELECT a FROM t WHERE a BETWEEN 1 AND §',
    'SELECT CASE WHEN 1 = 1 THEN § ELSE 1 END',
    'SELECT count(DISTINCT §) FROM t',
    'SELECT sum(a) OVER (PARTITION BY § ORDER BY b) FROM t',
    'SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY §)',
    'WITH x AS (SELECT §) SELECT 1',
    'SELECT 1 UNION SELECT §',
    'VALUES (§)',
    'EXPLAIN SELECT §',
  ])('an unlisted function decides in every place: %s', (place) => {
    for (const which of dialects) {
      if (which !== 'mysql' || !place.startsWith('VALUES')) {
        expect(inspectSql(which, place.replace('§', 'abs(1)'))).toMatchObject({ readOnly: true })
      }
      for (const call of ['danger(1)', 'Danger ( 1 )', '"danger"(1)', 'abs(danger(1))', 's.danger(1)']) {
        expect(inspectSql(which, place.replace('§', call))).toMatchObject({ readOnly: false })
      }
    }
  })
})
