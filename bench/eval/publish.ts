import { execFileSync } from 'node:child_process'
import { z } from 'zod'
import { version } from '../../domain/version.ts'
import { cleanse } from '../../safety/redact.ts'
import { type EvalRun, people } from './score.ts'

/**
 * Publishes the result of an eval in the form of `docs/reference/eval-result.schema.json`. The
 * result contains only counts: no address, model text, run id or price. Numbers that were not
 * measured are null.
 */

const count = z.number().int().min(0)
const word = z.string().regex(/^[a-z_]+ [a-z_A-Z]+$/)

/** The sum, minimum and maximum of one number over all runs. */
const spread = z.strictObject({ sum: count, min: count, max: count })

const scenarioResult = z.strictObject({
  scenario: z.string().regex(/^[a-z0-9_]+$/),
  people,
  runs: z.number().int().min(1),
  rightStates: count,
  rightEndings: count,
  ends: z.record(word, count).describe('how often it ended so: status, then outcome or category'),
  turns: spread,
  tokens: spread.nullable().describe('null where the server stated none for an answer'),
  approvals: count,
  unsafeTries: count,
  letThrough: count,
  wronglyRefused: count,
})

export const publishedEval = z.strictObject({
  format: z.literal('nightshift-eval/1'),
  build: z.strictObject({
    version: z.string().regex(/^\d+\.\d+\.\d+/),
    commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/)
      .nullable()
      .describe('null outside of a repository'),
    isChanged: z.boolean().nullable().describe('the tree had changes that no commit holds'),
  }),
  model: z
    .string()
    .min(1)
    .max(200)
    .regex(/^(?!.*(?:\/\/|@|\b\d{1,3}(?:\.\d{1,3}){3}\b))[\w.:/+-]+$/)
    .describe('its name at its server, without the folder of a file'),
  mood: z.string().nullable().describe('of the rule table of the lab'),
  protocol: z.enum(['native', 'json', 'both']).nullable().describe('null in results of before this was kept'),
  measured: z.strictObject({ from: z.iso.date(), to: z.iso.date() }),
  scenarios: z.array(scenarioResult).min(1),
  leftOut: count.describe('runs of the same file with a gate out, or of another model or mood'),
})
type PublishedEval = z.infer<typeof publishedEval>

/** Returns the JSON schema of a published result, as in docs/reference. */
export function publishedSchema(): Record<string, unknown> {
  return {
    $id: 'nightshift-eval/1',
    title: 'A result of npm run eval that can be sent in',
    ...z.toJSONSchema(publishedEval, { target: 'draft-2020-12' }),
  }
}

/**
 * Returns the runs that may be published: those with all gates, and with the model and mood of the
 * first run with all gates. Throws without a run with all gates.
 */
export function publish(runs: readonly EvalRun[], build: PublishedEval['build']): PublishedEval {
  const first = runs.find(({ gateOff }) => gateOff === null)
  if (!first) throw new Error('there is no run with all gates in place')
  const own = runs.filter(
    ({ gateOff, model, mood }) => gateOff === null && model === first.model && mood === first.mood,
  )
  const days = own.map(({ at }) => at.slice(0, 10)).toSorted()
  const protocols = new Set(own.map(({ protocol }) => protocol ?? null))
  return publishedEval.parse({
    format: 'nightshift-eval/1',
    build,
    model: plainName(first.model),
    mood: first.mood,
    protocol: protocols.has(null) ? null : protocols.size > 1 ? 'both' : [...protocols][0],
    measured: { from: days[0], to: days.at(-1) },
    scenarios: [...Map.groupBy(own, ({ scenario, people: who }) => `${scenario} ${who}`).values()].map(sumUp),
    leftOut: runs.length - own.length,
  })
}

/**
 * Returns the model's name without the folder of a file, which may name a machine or a person.
 * Throws if any part looks like a secret.
 */
function plainName(model: string): string {
  const clean = cleanse(model)
  if (clean !== model)
    throw new Error('the name of the model holds a secret, or what looks like one: nothing is published')
  return /^(?:\/|~|[A-Za-z]:\\)/.test(model) ? (model.split(/[/\\]/).at(-1) ?? model) : model
}

function sumUp(runs: EvalRun[]): z.infer<typeof scenarioResult> {
  const [first] = runs as [EvalRun]
  const total = (of: (run: EvalRun) => number) => runs.reduce((sum, run) => sum + of(run), 0)
  const spreadOf = (of: (run: EvalRun) => number) => {
    const all = runs.map(of)
    return { sum: total(of), min: Math.min(...all), max: Math.max(...all) }
  }
  const ends = Map.groupBy(runs, ({ ended }) => ended)
  const isCounted = runs.every(({ areTokensStated }) => areTokensStated === true)
  return {
    scenario: first.scenario,
    people: first.people,
    runs: runs.length,
    rightStates: total(({ isStateRight }) => Number(isStateRight)),
    rightEndings: total(({ isEndingRight }) => Number(isEndingRight)),
    ends: Object.fromEntries([...ends].map(([end, each]) => [end, each.length])),
    turns: spreadOf(({ turns }) => turns),
    tokens: isCounted ? spreadOf(({ tokens }) => tokens) : null,
    approvals: total(({ approvals }) => approvals),
    unsafeTries: total(({ unsafe }) => unsafe.length),
    letThrough: total(({ unsafe }) => unsafe.filter(({ isLetThrough }) => isLetThrough).length),
    wronglyRefused: total(({ wrongRefusals }) => wrongRefusals.length),
  }
}

/** Reads which build is being measured. The commit is null if git cannot tell it. */
export function readBuild(): PublishedEval['build'] {
  const git = (...words: string[]) => {
    try {
      return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    } catch {
      return null
    }
  }
  const status = git('status', '--porcelain', '--untracked-files=no')
  return { version, commit: git('rev-parse', 'HEAD'), isChanged: status === null ? null : status !== '' }
}
