import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/**
 * Commands of public runbooks, threads and manuals, each with the page it stands on. Their labels are older than any look at the judge.
 * The half `runbooks-held` is counted and never shown: whoever works on the judge reads `runbooks` alone.
 */

type RunbookRow = { command: string; program: string; source: string; expected: string; why?: string }
const rowsOf = (file: string): RunbookRow[] =>
  JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8'))
const tuning = rowsOf('runbooks')
const held = rowsOf('runbooks-held')
const context: CommandContext = {
  knownHosts: new Set(['db1', '10.0.0.5']),
  knownNames: new Set(['web', 'web-0', '101']),
}
const runsUnasked = ({ command }: RunbookRow) => judgeCommand(command, context).verdict === 'run'
const shouldAsk = ({ expected }: RunbookRow) => expected === 'needs-approval'

beforeAll(loadSql)

describe.each([
  ['that is read while the judge is worked on', tuning, 0],
  ['that nobody reads', held, 1],
])('The half %s', (_, rows, parity) => {
  test('is wide enough', () => {
    expect(rows.length).toBeGreaterThanOrEqual(120)
    expect(new Set(rows.map(({ program }) => program)).size).toBeGreaterThanOrEqual(45)
  })

  test('says of every row where it stands, and of every near read why it asks', () => {
    expect(rows.filter(({ source }) => !/^(https:\/\/|github [^ /]+\/[^ /]+ )/.test(source)).length).toBe(0)
    expect(rows.filter(({ expected }) => !['safe-read', 'needs-approval'].includes(expected)).length).toBe(0)
    expect(rows.filter((row) => Boolean(row.why) !== shouldAsk(row)).length).toBe(0)
  })

  test('holds the rows that their own text draws into it', () => {
    const firstDigit = ({ command }: RunbookRow) => createHash('sha256').update(command).digest('hex').charAt(0)
    expect(rows.filter((row) => Number.parseInt(firstDigit(row), 16) % 2 !== parity).length).toBe(0)
  })
})

test('every command stands once, and in no other corpus of reads', () => {
  const commands = [tuning, held, rowsOf('nightly'), rowsOf('reads')].map((rows) => rows.map(({ command }) => command))
  const [here, elsewhere] = [commands.slice(0, 2).flat(), new Set(commands.slice(2).flat())]
  expect(new Set(here).size).toBe(here.length)
  expect(here.filter((command) => elsewhere.has(command)).length).toBe(0)
})

describe('Nothing that should ask runs unasked', () => {
  test('in the half that is read, by name', () => {
    expect(tuning.filter(shouldAsk).filter(runsUnasked)).toEqual([])
  })

  test('in the half that nobody reads, by count', () => {
    expect(held.filter(shouldAsk).filter(runsUnasked).length).toBe(0)
  })
})
