import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import type { CommandVerdict } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { judgeOnceLookedUp, type RunbookRow, rowsOf, runsOnceLookedUp, runsUnasked, shouldAsk } from './runbook-rows.ts'

/**
 * Why reads of runbooks are still asked about: a page for people, made of what the judge says of
 * each.
 */

const reasons: readonly { reason: string; holds(judged: CommandVerdict): boolean }[] = [
  {
    reason: '`sudo`: runs only commands that the manifest of a device lists word for word',
    holds: ({ code }) => code === 'ROOT',
  },
  {
    reason: 'A whole object, which may contain an environment, values or a configuration; single fields run',
    holds: ({ code, reason }) =>
      code === 'ARGUMENT' && /printed as a whole|name (?:fields|columns)|shows (?:environments|scripts)/.test(reason),
  },
  { reason: 'A path with secrets, or a folder above one', holds: ({ code }) => code === 'SENSITIVE_PATH' },
  {
    reason: 'An unknown program: not known as read-only, a plug-in or a script',
    holds: ({ code }) => code === 'UNKNOWN_COMMAND' || code === 'COMMAND_WORD',
  },
  {
    reason: 'An unknown sub-command, option or argument of the program: it may write, never end, or show secrets',
    holds: ({ code }) => code === 'ARGUMENT',
  },
  { reason: 'Only the shell knows the value', holds: ({ code }) => code === 'SHAPE' },
  {
    reason: 'The command would connect to a host that was not looked up',
    holds: ({ code }) => code === 'EXFILTRATION',
  },
  {
    reason: 'In a container or on another host the program obeys settings that cannot be checked beforehand',
    holds: ({ code }) => code === 'SURROUNDINGS',
  },
  {
    reason: 'A script, a statement or a template that may write or show secrets',
    holds: ({ code }) => code === 'LANGUAGE',
  },
  {
    reason: 'The command runs another command, which a person has to review',
    holds: ({ code }) => code === 'WRAPPER' || code === 'ASSIGNMENT',
  },
  { reason: 'The command never ends, and has no bounded form', holds: ({ code }) => code === 'UNBOUNDED' },
  { reason: 'The command also writes or sends', holds: () => true },
]

const maxExamples = 2
const pageFile = new URL('../../../docs/reference/still-asked.md', import.meta.url)
const readsOf = (file: string): RunbookRow[] => rowsOf(file).filter((row) => !shouldAsk(row))
const reasonOf = (row: RunbookRow): string => {
  const judged = judgeOnceLookedUp(row)
  return reasons.find(({ holds }) => holds(judged))!.reason
}
const inCell = (text: string): string => `\`${text.replaceAll('|', '\\|').slice(0, 90)}\``

function tables(): string {
  const halves = [readsOf('runbooks'), readsOf('runbooks-held')] as const
  const numbers = halves.map((rows) => [
    rows.length,
    rows.filter(runsUnasked).length,
    rows.filter(runsOnceLookedUp).length,
  ])
  const counted = [
    '| half | reads | run unchanged | run after names were looked up or code corrected them | still need an approval |',
    '| --- | --- | --- | --- | --- |',
    ...['seen during development', 'held back'].map((half, at) => {
      const [all, bare, looked] = numbers[at]!
      return `| ${half} | ${all} | ${bare} | ${looked} | ${all! - looked!} |`
    }),
  ]
  const [read, unread] = halves.map((rows) =>
    Map.groupBy(
      rows.filter((row) => !runsOnceLookedUp(row)),
      reasonOf,
    ),
  )
  const grouped = reasons
    .map(({ reason }) => ({ reason, own: read!.get(reason) ?? [], others: unread!.get(reason)?.length ?? 0 }))
    .filter(({ own, others }) => own.length + others > 0)
    .sort((a, b) => b.own.length + b.others - a.own.length - a.others)
    .map(
      ({ reason, own, others }) =>
        `| ${reason} | ${own.length} | ${others} | ${
          own
            .slice(0, maxExamples)
            .map(({ command }) => inCell(command))
            .join('<br>') || 'only in the half that was held back'
        } |`,
    )
  return [...counted, '', '| reason | seen | held back | example |', '| --- | --- | --- | --- |', ...grouped].join('\n')
}

beforeAll(loadSql)

// `UPDATE=1 npm test -- test/safety/command/still-asked` writes the tables of the page again.
test('the page for people lists what is still asked, and why', () => {
  const page = () => readFileSync(pageFile, 'utf8')
  if (process.env.UPDATE) writeFileSync(pageFile, page().replace(/^\| half \|[\s\S]*\n\|.*$/m, tables))
  expect(page()).toContain(tables())
})

test('no command of the half that nobody reads is on the page', () => {
  const page = readFileSync(pageFile, 'utf8')
  expect(rowsOf('runbooks-held').filter(({ command }) => page.includes(inCell(command))).length).toBe(0)
})
