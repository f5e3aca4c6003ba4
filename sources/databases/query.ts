import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { allowsStatements, type QueryVerdict } from '../../domain/source.ts'
import { inspectSql } from '../../safety/sql/inspect.ts'
import { guardValues, hiddenState, tooMuchState } from '../../safety/sql/postgres-guards.ts'
import { namesOf } from '../../safety/sql/postgres-names.ts'
import { followStatements, showsStatements } from '../../safety/sql/postgres-sessions.ts'
import { cutText, defineSourceTool, fitSummary, SourceError, type ToolReading } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import { readCatalogue } from './query-catalogue.ts'
import { findSecretUse, hideCell, type ShownAs } from './query-hidden.ts'
import { type Estimate, readEstimate } from './query-plan.ts'
import { findExcessRights, sayExcess } from './query-rights.ts'

/**
 * Runs a model's statement if an admin allowed this for the source. The SQL judge, the login's
 * rights, the catalogue and the plan may each refuse the statement. A statement that passes runs in
 * a transaction that cannot write.
 */

const maxStatementCharacters = 4_000
const maxRows = 100
const maxColumns = 40
const maxCellCharacters = 2_000

/** The option of a source with which an admin allows statements of models. */
export const queryOption = { query: z.literal('allowed').optional() }

const howToAllow = (source: string): string =>
  `${source} answers only ask_database; an admin may allow statements: nightshift sources add ${source} … --option query=allowed`

/**
 * Judges one reading statement by its text. For an almost valid statement, also returns the valid
 * form.
 */
function judgeStatement(given: string): QueryVerdict {
  const sql = withoutEnd(given)
  const reason = findReason(sql)
  if (reason === null) return { ok: true }
  const bounded = [...listBounded(sql)].find((form) => form !== sql && findReason(form) === null)
  return {
    ok: false,
    reason: `${reason}${adviceOf(reason)}`,
    bounded: bounded === undefined ? null : { sql: bounded },
    instead: 'Write one SELECT, SHOW or EXPLAIN without this part, or use ask_database.',
  }
}

function findReason(sql: string): string | null {
  const { readOnly, reason } = inspectSql('postgres', sql)
  if (!readOnly) return reason
  return namesOf(sql) === null ? 'more than one statement' : null
}

const withoutEnd = (sql: string): string => sql.replace(/[\s;]+$/, '')

/** Lists forms of the statement without the parts that execute it, lock rows or add a statement. */
function* listBounded(sql: string): Generator<string> {
  yield sql.replace(/^(\s*explain\s*)(?:\((?:[^()]*,)?\s*analyze\b[^()]*\)|analyze\b(?:\s+verbose\b)?)/i, '$1')
  yield sql.replace(/\s+for\s+(?:no\s+key\s+)?(?:key\s+)?(?:update|share)(?:\s+(?:nowait|skip\s+locked))?\s*$/i, '')
  const [first, ...rest] = sql.split(';')
  if (first && rest.length > 0 && !sql.includes('--')) yield first
}

const advice: readonly [reason: RegExp, words: string][] = [
  [/^more than \d+ rows$/, ': as generate_series(1, 1000)'],
  [/^a series without plain bounds$/, ': write numbers, as generate_series(1, 1000)'],
  [/^EXPLAIN analyze$/i, ' runs the statement: plain EXPLAIN shows the plan'],
  [
    /^(?:InsertStmt|UpdateStmt|DeleteStmt|MergeStmt|CopyStmt|DoStmt|CallStmt|Create|Alter|Drop|Vacuum|Truncate|WITH \w+Stmt)/,
    ': only SELECT, SHOW and EXPLAIN are allowed here',
  ],
]

const adviceOf = (reason: string): string => advice.find(([form]) => form.test(reason))?.[1] ?? ''

export const queryDatabase = defineSourceTool({
  name: 'query_database',
  isRare: true,
  needs: 'queries',
  description:
    'Run one SELECT, SHOW or EXPLAIN on a database that allows it; 100 rows at most. Only if ask_database is not enough.',
  input: z.strictObject({
    source: z.string().max(40).optional().describe('where there are several'),
    sql: z
      .string()
      .min(1)
      .max(maxStatementCharacters)
      .meta({
        description: 'one statement, without values of credentials',
        examples: ['SELECT state, count(*) FROM pg_stat_activity GROUP BY state'],
      }),
  }),
  judge: ({ sql }) => judgeStatement(sql),
  judgeAt: (_, options, source) =>
    allowsStatements(options) ? { ok: true } : { ok: false, reason: howToAllow(source), bounded: null },
  labels: () => ({}),
  say: ({ rows, notShown }, { sql }) =>
    `${formatCount((Array.isArray(rows) ? rows.length : 0) + Number(notShown ?? 0), 'row')} of ${cutText(sql.replace(/\s+/g, ' '), 120)}`,
  read: async (ask: AskDatabase, { sql }, { options }) => {
    if (!allowsStatements(options)) throw new SourceError('REJECTED', howToAllow('this source'))
    return await readStatement(ask, withoutEnd(sql))
  },
})

const refuse = (why: string): never => {
  throw new SourceError('REJECTED', `the statement was refused: ${why}`)
}

async function readStatement(ask: AskDatabase, given: string): Promise<ToolReading> {
  const verdict = judgeStatement(given)
  const names = verdict.ok ? namesOf(given) : null
  if (!verdict.ok || names === null) return refuse(verdict.ok ? 'more than one statement' : verdict.reason)
  const sql = names.text
  const excess = await findExcessRights(ask)
  if (excess.length > 0) return refuse(sayExcess(excess))
  const { refusal, columns, views, plain } = await readCatalogue(ask, names)
  const followed = showsStatements([...names.relations, ...names.functions, ...views])
    ? followStatements(sql, views)
    : null
  const torn = followed && (names.takesWholeRows ? 'a row as one value' : followed.torn)
  const why =
    refusal ??
    findSecretUse(names, columns) ??
    (torn && `${torn} may show the values of others' statements: name the columns`)
  if (why !== null) return refuse(why)
  if (names.statement !== 'SelectStmt')
    return fold(await ask({ sql, maxRows }), {
      as: names.statement === 'ExplainStmt' ? 'plan' : 'rows',
      estimate: null,
    })
  const guarded = guardValues(sql, { plain: new Set(plain), statements: followed?.names ?? null })
  if ('refusal' in guarded) return refuse(guarded.refusal)
  // Wraps the statement in a SELECT, in which only a read is valid. The server then returns at most
  // one row more than is shown.
  const bounded = `select * from (\n${guarded.sql}\n) as looked limit ${maxRows + 1}`
  const plan = await readEstimate(ask, bounded)
  if (plan.refusal !== null) return refuse(plan.refusal)
  const answer = await ask({ sql: bounded, maxRows }).catch(sayGuard)
  return fold(answer, { as: followed ? 'statements' : 'rows', estimate: plan.estimate })
}

/** Refuses with the reason if a guard in the statement ended the statement. */
function sayGuard(error: unknown): never {
  const state = /\((\w{5})\)$/.exec(String((error as Error).message))?.[1]
  if (state === hiddenState)
    refuse(
      'a function or operator would take apart a value that holds a statement, a password or a field that is named like a credential: leave that row out, name the field, or show the column as it is or as left(column, 100)',
    )
  if (state === tooMuchState)
    refuse('a value is larger than a read may keep: select less, or write left(column, 100) inside')
  throw error
}

type Asked = { as: ShownAs; estimate: Estimate | null }

function fold(answer: Awaited<ReturnType<AskDatabase>>, { as, estimate }: Asked): ToolReading {
  const columns = [...new Set(answer.columns)].slice(0, maxColumns)
  const shown = answer.rows.map((row) => columns.map((column) => cutCell(hideCell(row[column] ?? null, column, as))))
  const remarks = [
    answer.isCut && `there are more than ${maxRows} rows: add a condition, an order with LIMIT, or count(*)`,
    answer.columns.length > new Set(answer.columns).size && 'columns of one name are shown once: name them with AS',
    new Set(answer.columns).size > maxColumns &&
      `${new Set(answer.columns).size - maxColumns} more columns: name those that matter`,
  ].filter((each) => typeof each === 'string')
  return {
    summary: fitSummary(shown, (kept, omitted) => ({
      columns,
      rows: kept,
      ...(omitted > 0 && { notShown: omitted }),
      ...(remarks.length > 0 && { remarks }),
      ...(estimate !== null && shown.length === 0 && { expected: estimate }),
    })),
    whole: shown
      .map((row) => JSON.stringify(Object.fromEntries(row.map((cell, at) => [columns[at]!, cell]))))
      .join('\n'),
    isEmpty: shown.length === 0,
    // Marks the result as partial, because the searched row may be among the unread rows.
    ...(answer.isCut && { isCut: true, isPartial: true }),
  }
}

const cutCell = (value: unknown): unknown => (typeof value === 'string' ? cutText(value, maxCellCharacters) : value)
