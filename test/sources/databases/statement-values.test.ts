import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { hideLiterals } from '../../../sources/databases/statement.ts'

describe('a statement is shown without its values', () => {
  test.each([
    ['select * from users where mail = $1 and age > 30', 'select * from users where mail = ? and age > ?'],
    ["update orders set note = 'x' where id in (1, 2, 3)", 'update orders set note = ? where id in (?, …)'],
    [`select "Full Name" from "People" where id = 0x1F`, 'select "Full Name" from "People" where id = ?'],
    ["create role r login password 'p'", 'create role r login password ?'],
    ['select 1 /* by anna */ -- token\nfrom t', 'select ? from t'],
    ['select $tag$a secret$tag$, $$b$$ from t2', 'select ?, … from t2'],
    ["select E'it\\'s', 'it''s' from t", 'select ?, … from t'],
  ])('%s', (sql, shown) => {
    expect(hideLiterals(sql, 'postgres')).toBe(shown)
  })

  test('whatever a quoted value contains, and wherever the statement is cut, none of it is shown', () => {
    const value = fc.stringMatching(/^[a-z]{3}[a-z'"\\$ -]{0,8}$/).map((text) => `Zq7${text}Zq7`)
    const quoted = value.map((text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`)
    const statement = fc
      .tuple(
        fc.constantFrom('select ', 'insert into t values (1, ', 'update t set a = '),
        fc.array(quoted, { minLength: 1, maxLength: 3 }),
      )
      .map(([head, values]) => head + values.join(', '))
    fc.assert(
      fc.property(
        statement,
        fc.nat(200),
        fc.constantFrom('postgres' as const, 'mysql' as const),
        (sql, cut, dialect) => {
          expect(hideLiterals(sql.slice(0, sql.length - (cut % 20)), dialect)).not.toMatch(/Zq7/)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  const secret = 'Zqab12cd34ef56gh9K'
  test.each([
    `select "it\\"s ${secret}", 'a\\', ${secret}, 'b'`,
    `select _utf8mb4'${secret}', _utf8mb4"${secret}", _binary /* x */ '${secret}', N"${secret}"`,
    'select X\'734512987612\', x"734512987612", 0x734512987612, 0b111111111111, 734512987612abc',
    `select 'a'"${secret}" '${secret}'`,
    `/*!50000 select '${secret}' */`,
    `select /*M!100100 '${secret}' */ 1 /*!99999 ' */ '${secret}' /*!99999 ' */`,
    `select 1 --'${secret}'`,
    `select "a' , '${secret}"`,
    `select \`a\\\`, '${secret}' # ${secret}`,
    `set @x := ${secret}`,
    `set global init_connect = ${secret}`,
    `set x = 1, @@global.y = ${secret}`,
    `change master to master_password=${secret}, master_user="${secret}"`,
    `alter table t connection="mysql://a:${secret}@h/d"`,
    `create user a identified by "${secret}"`,
    `select $$${secret}$$, $x$${secret}$x$`,
    `select 1 where 'broken = '${secret}'`,
    `select a = b" and c = "${secret}"`,
  ])('MySQL in any mode: %s', (sql) => {
    expect(hideLiterals(sql, 'mysql')).not.toMatch(/Zqab|7345|1111/)
  })
})
