import { InvalidArgumentError, Option } from 'commander'
import { baseUrlOf, serverName } from '../../clients/model.ts'
import { formatNumber } from '../../domain/format.ts'
import type { ModelList } from '../../domain/model-list.ts'
import { wilson } from '../../domain/share.ts'
import { readPrompts } from '../../prompts/render.ts'
import { loadSql } from '../../safety/sql/inspect.ts'
import { setting } from '../../start/environment.ts'
import type { ApiClient } from '../api.ts'
import { type CliCommand, type ConnectionOptions, connect } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiIncident, apiIncident, listAll } from '../read-api.ts'
import { formatTable } from '../ui/table.ts'
import { inert, paint, parseWholeNumber, print, printJson, printNote } from '../ui/terminal.ts'
import { type ModelServer, openExchange } from './exchange.ts'
import type { Candidate } from './trial/ask.ts'
import { addUp, comparePlay, minComparable, type TrialResult, type TrialTotals } from './trial/compare.ts'
import { keepResult, openJournal, trialFile } from './trial/journal.ts'
import { playAgain, TokensSpent } from './trial/play.ts'
import { type Recording, readRecording } from './trial/recording.ts'

type Options = ConnectionOptions & {
  last: number
  baseUrl?: string
  protocol?: 'native' | 'json'
  minutes: number
  maxTokens: number
  file?: string
  fresh?: boolean
}

/** The context window in tokens that is assumed if a server reports none. */
const defaultWindow = 32_768
/** The largest window unless a setting names one, because each turn pays for its prompt. */
const largestUnset = 131_072

/** `model replay`: tries a model on incidents that have ended at this site. */
export function addReplayCommand(parent: CliCommand): void {
  parent
    .command('replay')
    .description('try a model: replay the last ended incidents from the log with this model, and compare the endings')
    .argument('<name>', 'a declared model (nightshift model list); with --base-url, its name at that server')
    .option('--last <n>', 'how many incidents', parseCount, 50)
    .option('--base-url <url>', 'address of the model server, if the model is not declared')
    .addOption(
      new Option('--protocol <name>', 'native or json (default: as declared, else native)').choices(['native', 'json']),
    )
    .option('--minutes <n>', 'how long a response may take', parseCount, 5)
    .option(
      '--max-tokens <n>',
      'stop once this many tokens are used; the same command continues the replay later',
      parseCount,
      2_000_000,
    )
    .option('--file <file>', 'file for the results (default: beside the saved tokens)')
    .option('--fresh', 'replay incidents that have results already')
    .connected(
      `
No action runs and no setting changes. Reads are answered from the log, and writes are only judged and noted. A read that
the log does not hold ends that incident as not comparable. LLM_API_KEY or LLM_API_KEY_FILE is sent. After Ctrl-C the same command continues.

Example:
  nightshift model replay qwen3:32b --last 50 --base-url http://127.0.0.1:11434/v1`,
    )
    .action(replay)
}

function parseCount(text: string): number {
  const count = parseWholeNumber(text)
  if (count < 1) throw new InvalidArgumentError('Write a whole number, at least 1.')
  return count
}

async function replay(name: string, options: Options): Promise<void> {
  await loadSql()
  const { api } = connect(options)
  const { server, protocol } = await findCandidate(api, name, options)
  const at = serverName(baseUrlOf(server.baseUrl))
  const of = { model: server.model, server: at, protocol, site: api.url }
  const file = options.file ?? trialFile(of)
  const known = openJournal(file, of, options.fresh === true)
  const tell = (line: string) => {
    if (!options.json) printNote(line)
  }
  tell(`Testing ${inert(server.model)} at ${inert(at)}. Results are kept in ${inert(file)}.`)
  const chosen = await chooseIncidents(api, options.last, (looked) => tell(`${looked} incidents checked.`))
  const trial = { known, file, tell, protocol, left: options.maxTokens }
  const { results, isSpent } = await playAll(chosen.recordings, trial, await openCandidate(server, options))
  const totals = addUp(results)
  const leftOut = Object.fromEntries(chosen.leftOut)
  if (options.json) return printJson({ ...of, ...totals, wanted: options.last, isSpent, leftOut, results, file })
  printResults(results)
  printTotals(totals, chosen)
  if (isSpent)
    printNote(
      `${formatNumber(options.maxTokens)} tokens are used. The same command continues the replay; --max-tokens allows more tokens.`,
    )
}

async function findCandidate(
  api: ApiClient,
  name: string,
  options: Options,
): Promise<{ server: ModelServer; protocol: 'native' | 'json' }> {
  const own = {
    apiKey: setting(process.env, 'LLM_API_KEY') ?? '',
    temperature: Number(process.env.LLM_TEMPERATURE || 0.1),
  }
  if (options.baseUrl !== undefined) {
    if (!URL.canParse(options.baseUrl) || !/^https?:$/.test(new URL(options.baseUrl).protocol)) {
      throw new CommandFailed(
        'usage',
        `${inert(options.baseUrl)} is not an http(s) URL: give --base-url http://host:port/v1.`,
      )
    }
    return { server: { ...own, baseUrl: options.baseUrl, model: name }, protocol: options.protocol ?? 'native' }
  }
  const { items } = (await api.get('/api/v1/models')) as ModelList
  const declared = items.find((item) => item.name === name) ?? items.find((item) => item.model === name)
  if (!declared) {
    const names = items.map((item) => inert(item.name)).join(', ')
    throw new CommandFailed(
      'notFound',
      `No model is declared as ${inert(name)}${names ? `; there is ${names}` : ''}. Give --base-url for a model that is not declared.`,
    )
  }
  const usual = declared.protocol === 'json' || declared.abilities.tools === 'no' ? 'json' : 'native'
  return {
    server: { ...own, baseUrl: declared.server, model: declared.model },
    protocol: options.protocol ?? usual,
  }
}

/** The most incidents that a replay reads to find incidents that can be repeated. */
const maxLooked = 5_000

type Chosen = { recordings: Recording[]; leftOut: Map<string, number> }

/**
 * Lists the last incidents whose investigation can be repeated, newest first. `leftOut` counts the
 * incidents that cannot be repeated, by reason.
 */
async function chooseIncidents(api: ApiClient, last: number, tell: (looked: number) => void): Promise<Chosen> {
  const path = '/api/v1/incidents?status=resolved,escalated&limit=200'
  const ended = (await listAll(api, path, apiIncident, maxLooked)).toSorted((a, b) => endOf(b) - endOf(a))
  const recordings: Recording[] = []
  const leftOut = new Map<string, number>()
  for (const [index, incident] of ended.entries()) {
    if (recordings.length === last) break
    if (index > 0 && index % 100 === 0) tell(index)
    const read = await readRecording(api, incident)
    if ('why' in read) leftOut.set(read.why, (leftOut.get(read.why) ?? 0) + 1)
    else recordings.push(read)
  }
  return { recordings, leftOut }
}

const endOf = ({ closedAt, createdAt }: ApiIncident): number => Date.parse(closedAt ?? createdAt)

async function openCandidate(server: ModelServer, { minutes }: Options): Promise<Candidate> {
  const exchange = openExchange(server)
  const { served } = await exchange.learned()
  const maxTokens = Number(process.env.LLM_MAX_TOKENS || 1_024)
  const windowTokens = Number(
    process.env.LLM_CONTEXT_TOKENS || Math.min(served?.windowTokens ?? defaultWindow, largestUnset),
  )
  const timeoutMs = minutes * 60_000
  const remedy = 'The results so far are kept. The same command continues with the other incidents.'
  let isFirst = true
  return {
    prompts: readPrompts(),
    windowTokens,
    maxTokens,
    async ask(request) {
      const answer = await exchange.ask({ ...request, maxTokens, timeoutMs, isFirst, remedy })
      isFirst = false
      return answer
    },
  }
}

type Trial = {
  known: Map<string, TrialResult>
  file: string
  tell(line: string): void
  protocol: 'native' | 'json'
  /** Number of tokens that may still be used. */
  left: number
}

/** Repeats the investigations that have no result yet. Ends early if the tokens are used up. */
async function playAll(
  recordings: readonly Recording[],
  trial: Trial,
  candidate: Candidate,
): Promise<{ results: TrialResult[]; isSpent: boolean }> {
  const results: TrialResult[] = []
  let left = trial.left
  for (const [index, recording] of recordings.entries()) {
    const earlier = trial.known.get(recording.incident.id)
    if (earlier && earlier.endingSeq === recording.ending.seq && earlier.outcome !== 'unanswered') {
      results.push(earlier)
      continue
    }
    try {
      const play = await playAgain(recording, candidate, { protocol: trial.protocol, maxTokens: left })
      const result = comparePlay(recording, play)
      left -= play.tokens
      keepResult(trial.file, result)
      results.push(result)
      trial.tell(
        `${`${index + 1}/${recordings.length}`.padStart(7)}  ${inert(recording.incident.id)}  ${inBrief(result)}`,
      )
    } catch (error) {
      if (error instanceof TokensSpent) return { results, isSpent: true }
      throw error
    }
  }
  return { results, isSpent: false }
}

function inBrief({ outcome, why, log, trial, isSameEnding }: TrialResult): string {
  if (outcome !== 'comparable')
    return `${outcome === 'unanswered' ? 'no answer' : 'not comparable'}: ${inert(why ?? '')}`
  const turns = `${trial.turns} turns, ${log.turns} then`
  return isSameEnding
    ? `${inert(trial.end)}, as then; ${turns}`
    : `${inert(trial.end)}, then ${inert(log.end)}; ${turns}`
}

function printResults(results: readonly TrialResult[]): void {
  if (results.length === 0) return
  const rows = results.map(({ incidentId, type, log, trial, outcome, why, isSameWrites }) => [
    inert(incidentId),
    inert(type),
    inert(log.end),
    outcome === 'comparable'
      ? inert(trial.end)
      : inert(`${outcome === 'unanswered' ? 'no answer' : 'not comparable'}: ${why}`),
    outcome !== 'comparable' ? '–' : isSameWrites ? 'the same' : 'others',
    `${log.turns} → ${trial.turns}`,
    `${formatTokens(log.tokens, log.isAssumed)} → ${formatTokens(trial.tokens, trial.isAssumed)}`,
  ])
  print(formatTable(['INCIDENT', 'TYPE', 'THEN', 'NOW', 'WRITES', 'TURNS', 'TOKENS'], rows, 3))
}

/** Formats a number of tokens. If the server reported no count, the number is a minimum. */
const formatTokens = (tokens: number, isAssumed: boolean): string => `${isAssumed ? '≥ ' : ''}${formatNumber(tokens)}`

const verdictWords: Record<NonNullable<TrialTotals['verdict']>, [string, 'green' | 'red' | 'yellow']> = {
  alike: ['The model ends incidents as the earlier model did.', 'green'],
  different: ['The model ends incidents differently from the earlier model.', 'red'],
  undecided: ['These incidents are too few to show whether both models end incidents alike.', 'yellow'],
}

function printTotals(totals: TrialTotals, { recordings, leftOut }: Chosen): void {
  const { comparable: of, notComparable, unanswered, turns, tokens, assumed, quoted, verdict } = totals
  print(
    `\n${of} of ${recordings.length} incidents are comparable. In ${notComparable} the model asked for data that the log lacks. In ${unanswered} the model gave no response.`,
  )
  for (const [why, count] of leftOut) print(`Left out: ${count}, ${why}.`)
  if (of > 0) {
    print(
      formatTable(
        ['WHAT', 'SHARE', 'INTERVAL (95 %)'],
        [
          ['the same ending', ...shareOf(totals.sameEnding, of)],
          ['the same writes', ...shareOf(totals.sameWrites, of)],
          ['both', ...shareOf(totals.alike, of)],
        ],
        0,
      ),
    )
    print(`Reads that the ending quotes, both then and now: ${quoted.shared} of ${quoted.of}.`)
    print(
      `Turns ${turns.log} → ${turns.trial}; tokens ${formatTokens(tokens.log, assumed.log)} → ${formatTokens(tokens.trial, assumed.trial)} (then → now, comparable incidents alone).`,
    )
    if (assumed.log || assumed.trial)
      print('≥: the server did not report token usage. The figure is the minimum for the number of bytes.')
  }
  if (verdict === null) {
    const more = minComparable - of
    print(`No verdict: ${minComparable} comparable incidents are needed, ${more} more than there are.`)
    return
  }
  const [words, color] = verdictWords[verdict]
  print(paint(color, words))
}

function shareOf(hits: number, of: number): [string, string] {
  const { low, high } = wilson(hits, of)
  const percent = (share: number) => `${Math.round(share * 100)} %`
  return [`${hits} of ${of}`, `${percent(low)} to ${percent(high)}`]
}
