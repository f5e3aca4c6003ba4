import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type Mood, mood } from '../../lab/runbook/moods.ts'
import type { FaultName } from '../../lab/state.ts'
import { type EvalCase, gates, targets, upliftCases } from './cases.ts'
import { publish, readBuild } from './publish.ts'
import { type EvalRun, evalRun, people } from './score.ts'
import { type EvalSession, type Model, type PlannedRun, runbookModel, startSession } from './session.ts'
import { formatComparison, formatSummary, formatUplift } from './tables.ts'

const usage = `Plays incidents of the lab from end to end against a model, and scores each run.

  npm run eval -- [options]             play, then print the tables
  npm run eval -- uplift [options]      each gate of the judge on and off, where a bad mood tries what it keeps out
  npm run eval -- compare A B           two files of results: which differences lie outside the intervals
  npm run eval -- show FILE             the tables of a file
  npm run eval -- publish FILE          a file of results in the form that can be sent in
  npm run eval -- least FILE            turns and tools of the shortest good run of each scenario

  --runs N                  so often each (1)
  --scenarios a,b|all       ${Object.keys(targets).join(', ')} (all)
  --model NAME --base-url URL   any chat-completions server; its key is read from LLM_API_KEY (the lab's rule table)
  --moods a,b               of the rule table, "good" for none (good)
  --guards-off GATE[,GATE]  ${gates.join(', ')}; the lab's toy platform only
  --people WHO              approve, deny, edit or silent (approve)
  --out FILE                appends a JSON line for each run; a new file
  --resume FILE             the same with a file that is there: its runs are not played again
  --publish FILE            writes the result in the form that can be sent in, to a new file
  --json                    prints the lines of JSON instead of tables`

class WrongUse extends Error {
  override name = 'WrongUse'
}

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)

/**
 * Lists the runs in the order in which they are executed. Runs with a disabled gate come last,
 * because each gate needs a restart of two processes.
 */
export function planRuns(cases: readonly EvalCase[], runs: number): PlannedRun[] {
  const ordered = cases.toSorted((a, b) => (a.gateOff ?? '').localeCompare(b.gateOff ?? ''))
  return ordered.flatMap((each) => Array.from({ length: runs }, (_, at) => ({ ...each, run: at + 1 })))
}

/** Returns the key of a run in a results file. A run whose key is in the file is not repeated. */
export function keyOf(model: string, { scenario, mood, people: who, gateOff, run }: PlannedRun | EvalRun): string {
  return JSON.stringify([model, mood, scenario, who, gateOff, run])
}

/**
 * Reads the lines of a results file. Ignores an incomplete last line. Throws WrongUse with the
 * number of any other unreadable line.
 */
export function readResults(text: string): EvalRun[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.flatMap((line, at) => {
    try {
      return [evalRun.parse(JSON.parse(line))]
    } catch (error) {
      if (at === lines.length - 1 && error instanceof SyntaxError) return []
      const why = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message
      throw new WrongUse(`line ${at + 1} is no result of an eval: ${why}`)
    }
  })
}

const options = {
  runs: { type: 'string', default: '1' },
  scenarios: { type: 'string', default: 'all' },
  model: { type: 'string' },
  'base-url': { type: 'string' },
  moods: { type: 'string' },
  'guards-off': { type: 'string' },
  people: { type: 'string', default: 'approve' },
  out: { type: 'string' },
  resume: { type: 'string' },
  publish: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

type Asked = {
  model: Model
  cases: EvalCase[]
  runs: number
  file: string | null
  /** The path of the result file that can be published. */
  publishTo: string | null
  isJson: boolean
}

/** Parses the command line. Throws WrongUse with the fault and the possible choices. */
export function readAsked(words: readonly string[]): Asked {
  const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
  const isUplift = positionals[0] === 'uplift'
  const runs = Number(values.runs)
  if (!Number.isInteger(runs) || runs < 1)
    throw new WrongUse(`--runs takes a whole number from 1, not "${values.runs}"`)
  if (values.out && values.resume) throw new WrongUse('--resume appends to its file: leave --out away')
  if (values.out && existsSync(values.out))
    throw new WrongUse(`${values.out} is there: play on with --resume ${values.out}, or name another file`)
  if (values.publish && existsSync(values.publish)) throw new WrongUse(`${values.publish} is there: name another file`)
  if (values.resume && !existsSync(values.resume)) throw new WrongUse(`there is no ${values.resume}; begin with --out`)
  const base = values['base-url'] ?? null
  if ((base === null) !== (values.model === undefined)) throw new WrongUse('--model and --base-url go together')
  if (base && values.moods) throw new WrongUse('moods belong to the rule table of the lab: leave --base-url away')
  if (isUplift && base) throw new WrongUse('uplift plays the moods of the rule table: leave --base-url away')
  const model =
    base && values.model ? { name: values.model, baseUrl: base, apiKey: process.env.LLM_API_KEY ?? null } : runbookModel
  const who = oneOf('--people', values.people, people.options)
  const scenarios = values.scenarios === 'all' ? Object.keys(targets) : listed(values.scenarios)
  const moods = listed(values.moods ?? 'good').map((name) => oneOf('--moods', name, ['good', ...mood.options]))
  const off = listed(values['guards-off'] ?? '').map((name) => oneOf('--guards-off', name, gates))
  const cases = scenarios.flatMap((name) =>
    moods.flatMap((each) =>
      (off.length > 0 ? off : [null]).map((gateOff) => ({
        scenario: oneOf('--scenarios', name, Object.keys(targets)) as FaultName,
        mood: each === 'good' ? null : (each as Mood),
        people: who,
        gateOff,
      })),
    ),
  )
  const file = values.resume ?? values.out ?? null
  return {
    model,
    cases: isUplift ? upliftCases() : cases,
    runs,
    file,
    publishTo: values.publish ?? null,
    isJson: values.json,
  }
}

function oneOf<T extends string>(option: string, word: string, all: readonly T[]): T {
  const found = all.find((each) => each === word)
  if (!found) throw new WrongUse(`${option} does not know "${word}"; there is ${all.join(', ')}`)
  return found
}

/**
 * Reads the file's results so far. Removes an incomplete last line, so that new lines can follow.
 */
function resume(file: string): EvalRun[] {
  if (!existsSync(file)) return []
  const text = readFileSync(file, 'utf8')
  const runs = readResults(text)
  if (text !== '' && !text.endsWith('\n')) writeFileSync(file, runs.map((run) => `${JSON.stringify(run)}\n`).join(''))
  return runs
}

/**
 * Executes the runs whose results are not in the file, and appends each result to the file as its
 * run ends. Returns the results of all requested runs.
 */
async function playAll({ model, cases, runs, file, isJson }: Asked, signal: AbortSignal): Promise<EvalRun[]> {
  const known = new Map((file ? resume(file) : []).map((each) => [keyOf(each.model, each), each]))
  const plan = planRuns(cases, runs)
  const isNew = (wanted: PlannedRun) => !known.has(keyOf(model.name, wanted))
  const missing = plan.filter(isNew)
  console.error(`${plan.length} runs, ${plan.length - missing.length} are there already`)
  let session: EvalSession | null = null
  try {
    for (const [at, wanted] of missing.entries()) {
      if (signal.aborted) break
      session ??= await startSession(model)
      const done = await session.play(wanted).catch((error: Error) => error)
      if (done instanceof Error) {
        console.error(`  ${describe(wanted)} could not be played: ${done.message.split('\n')[0]}`)
        // Stops the session, because a hanging run may disturb the next run.
        await session.stop()
        session = null
        continue
      }
      known.set(keyOf(model.name, done), done)
      if (file) appendFileSync(file, `${JSON.stringify(done)}\n`)
      if (isJson) console.log(JSON.stringify(done))
      const words = done.isStateRight && done.isEndingRight ? 'right' : done.wrong.join('; ')
      console.error(`  ${at + 1} of ${missing.length}: ${describe(wanted)}: ${done.ended}, ${done.seconds} s, ${words}`)
    }
  } finally {
    await session?.stop()
  }
  return plan.flatMap((wanted) => known.get(keyOf(model.name, wanted)) ?? [])
}

function describe({ scenario, mood: how, people: who, gateOff, run }: PlannedRun): string {
  return `${scenario} ${run}${how ? `, ${how}` : ''}, people ${who}${gateOff ? `, without ${gateOff}` : ''}`
}

function formatAll(runs: readonly EvalRun[]): string {
  const uplift = formatUplift(runs)
  return [formatSummary(runs), ...(uplift ? [uplift] : [])].join('\n\n')
}

/** Formats the lines of the table of shortest good runs. */
function formatLeast(runs: readonly EvalRun[]): string {
  const good = runs.filter(
    (run) => run.isStateRight && run.isEndingRight && !run.gateOff && !run.mood && run.people === 'approve',
  )
  return [...Map.groupBy(good, ({ scenario }) => scenario)]
    .map(([scenario, each]) => {
      const [shortest] = each.toSorted((a, b) => a.turns - b.turns)
      const path = shortest?.path.filter((tool, at, all) => tool !== all[at - 1]).join(' ')
      return `${scenario} ${shortest?.turns} ${path}`
    })
    .join('\n')
}

async function main(words: readonly string[]): Promise<number> {
  const [first, ...files] = words
  const publishTo = (file: string | null, runs: readonly EvalRun[]) => {
    if (file === null) return
    writeFileSync(file, `${JSON.stringify(publish(runs, readBuild()), null, 2)}\n`)
    console.error(`Written: ${file}. Look at it before you send it.`)
  }
  const read = (file: string | undefined) => {
    if (!file || !existsSync(file)) throw new WrongUse(`name a file of results that is there, not "${file ?? ''}"`)
    return readResults(readFileSync(file, 'utf8'))
  }
  if (words.includes('--help')) console.log(usage)
  else if (first === 'compare') console.log(formatComparison(read(files[0]), read(files[1])))
  else if (first === 'show') console.log(formatAll(read(files[0])))
  else if (first === 'publish') console.log(JSON.stringify(publish(read(files[0]), readBuild()), null, 2))
  else if (first === 'least') console.log(formatLeast(read(files[0])))
  else {
    const asked = readAsked(words)
    const stop = new AbortController()
    process.once('SIGINT', () => {
      console.error(`\nThe run under way ends first.${asked.file ? ` Go on with --resume ${asked.file}.` : ''}`)
      stop.abort()
    })
    const runs = await playAll(asked, stop.signal)
    if (!asked.isJson) console.log(`\n${formatAll(runs)}`)
    if (runs.length > 0) publishTo(asked.publishTo, runs)
    if (stop.signal.aborted) return 130
  }
  return 0
}

/** Runs a command line of `npm run eval`. Returns the exit code. */
export async function runEval(words: readonly string[]): Promise<number> {
  try {
    return await main(words)
  } catch (error) {
    const isUse = error instanceof WrongUse || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
    if (!isUse) throw error
    console.error(`${(error as Error).message}\n\n${usage}`)
    return 2
  }
}
