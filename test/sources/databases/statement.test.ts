import { describe, expect, it } from '@jest/globals'
import { hideLiterals } from '../../../sources/databases/statement.ts'

const shapes = {
  postgresql: [
    (it: string) => `SELECT '${it}'`,
    (it: string) => `SELECT 'it''s ${it}'`,
    (it: string) => `SELECT E'a\\'${it}'`,
    (it: string) => `SELECT E'a\\\\' || '${it}'`,
    (it: string) => `SELECT 'a\\' || '${it}'`,
    (it: string) => `SELECT E'a'\n'b\\'${it}'`,
    (it: string) => `SELECT $$${it}$$`,
    (it: string) => `SELECT $tag$ $$ ' ${it} $tag$`,
    (it: string) => `SELECT $€$ ${it} $€$`,
    (it: string) => `SELECT a€$t$, 'x $t$ ${it}'`,
    (it: string) => `SELECT N'${it}', X'${it}', B'${it}', U&'${it}' UESCAPE '!'`,
    (it: string) => `SELECT '${it}`,
    (it: string) => `SELECT $tag$ ${it}`,
    (it: string) => `SELECT "a ${'b'}" FROM t WHERE c = '" ${it}'`,
    (it: string) => `SELECT 1 -- ${it}`,
    (it: string) => `SELECT 1 -- a\r, 'b\n${it}'`,
    (it: string) => `SELECT 1 /* ${it} */`,
    (it: string) => `SELECT 1 /* a /* b */ ${it} */`,
    (it: string) => `SELECT 1 /* ${it}`,
    (it: string) => `SELECT 1 \` '${it}' \` 2`,
    (it: string) => `ALTER ROLE app PASSWORD '${it}'`,
  ],
  mysql: [
    (it: string) => `SELECT '${it}'`,
    (it: string) => `SELECT "${it}"`,
    (it: string) => `SELECT "a""${it}"`,
    (it: string) => `SELECT 'a\\'${it}'`,
    (it: string) => `SELECT "a\\"${it}"`,
    (it: string) => `SELECT 'a\\\\' '${it}'`,
    (it: string) => `SELECT N'${it}', x'${it}', b'${it}', _utf8mb4 '${it}', _latin1'${it}'`,
    (it: string) => `SELECT '${it}`,
    (it: string) => `SELECT "${it}`,
    (it: string) => `SELECT \`a'b\` FROM t WHERE c = '\` ${it}'`,
    (it: string) => `SELECT 1 # ${it}`,
    (it: string) => `SELECT 1 -- ${it}`,
    (it: string) => `SELECT 1--'a\n${it}'`,
    (it: string) => `SELECT 1 /* ${it} */`,
    (it: string) => `SELECT /*!50000 'a */ ${it}' */`,
    (it: string) => `SELECT /*M!100100 "a */ ${it}" */`,
    (it: string) => `CHANGE MASTER TO MASTER_HOST='a', MASTER_PASSWORD='${it}'`,
    (it: string) => `CREATE USER 'app'@'%' IDENTIFIED BY '${it}'`,
  ],
}

const secrets = Array.from({ length: 200 }, (_, index) => `planted${index}secret`)

describe('a statement without its values', () => {
  for (const dialect of ['postgres', 'mysql'] as const) {
    const written = dialect === 'mysql' ? shapes.mysql : shapes.postgresql
    for (const shape of written) {
      it(`hides what ${dialect} reads as a value: ${JSON.stringify(shape('…'))}`, () => {
        expect(
          secrets.map((secret) => hideLiterals(shape(secret), dialect)).filter((shown) => shown.includes('planted')),
        ).toEqual([])
      })
    }

    it(`hides the value of ${dialect} wherever a server has cut the statement`, () => {
      for (const shape of written) {
        const statement = shape('plantedsecret')
        for (let end = 0; end <= statement.length; end++) {
          expect(hideLiterals(statement.slice(0, end), dialect)).not.toContain('plan')
        }
      }
    })

    it(`hides one value of ${dialect} behind any other`, () => {
      // Behind a string that is open, a quote would end it, and what follows is no value.
      for (const first of written.filter((shape) => !/^[^#-]*planted$/.test(shape('planted')))) {
        for (const second of written) {
          expect(hideLiterals(`${first('planted')}\n; ${second('planted')}`, dialect)).not.toMatch(/planted/)
        }
      }
    })
  }

  it('shows what a statement does', () => {
    expect(hideLiterals('UPDATE "Order" SET a = 5 WHERE b IN (1, 2, 3) AND c = $1', 'postgres')).toBe(
      'UPDATE "Order" SET a = ? WHERE b IN (?, …) AND c = ?',
    )
    expect(hideLiterals('SELECT /*!40001 SQL_NO_CACHE */ * FROM `order` WHERE a = "x"', 'mysql')).toBe(
      'SELECT * FROM `order` WHERE a = ?',
    )
  })
})
