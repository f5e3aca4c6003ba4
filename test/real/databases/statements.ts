import { readdirSync, readFileSync } from 'node:fs'
import { inspectSql, type SqlDialect } from '../../../safety/sql/inspect.ts'

/**
 * Statements of the corpora that the judge lets pass: those of `test/data/sql`, and those that
 * commands hold.
 */
export function listPassing(dialect: SqlDialect, program: RegExp): { passing: string[]; all: number } {
  const own = readFileSync(`test/data/sql/${dialect}.txt`, 'utf8').trim().split('\n')
  const commands = readdirSync('test/data/commands')
    .filter((file) => file !== 'runbooks-held.json')
    .flatMap((file) => JSON.parse(readFileSync(`test/data/commands/${file}`, 'utf8')) as { command: string }[])
    .filter(({ command }) => program.test(command))
    .flatMap(({ command }) => [...command.matchAll(/-[a-zA-Z]*[ce]\s+(?:'([^']*)'|"([^"]*)")/g)])
    .map(([, single, double]) => single ?? double ?? '')
  const all = [...new Set([...own, ...commands])]
  return { passing: all.filter((text) => inspectSql(dialect, text).readOnly), all: all.length }
}

/**
 * Tables with rows, a sequence, a view, a function and a trigger that would write, under the names
 * that the statements use.
 */
export const places = {
  tables: 'a b c d e t u x y orders items jobs sessions events requests parent log',
  columns: 'id a_id parent order_id x y z v n at ms',
}
