import { resolve } from 'node:path'
import { formatNumber, truncate } from '../../domain/format.ts'
import { predict } from '../../domain/passport.ts'
import { priceOf } from '../../domain/price.ts'
import { askOneCall, type OneCall } from '../../model/passport/check.ts'
import { CommandFailed } from '../exit-codes.ts'
import { openPorts } from '../model/server.ts'
import { printNote } from '../ui/terminal.ts'
import { type Answers, answerOf, askFor, knownAnswer } from './answers.ts'
import type { Readers } from './env-file.ts'
import { readKey } from './key-file.ts'
import { printRow, row, type StepRow } from './steps.ts'

const answerMs = 120_000
const turns = 4

/** The settings for a model. Null for no model. */
type ModelSettings = Record<string, string> | null

type Options = { isDryRun: boolean; isQuiet: boolean; readers: Readers }

/**
 * Asks for a model's server, name and key, and tests them with one tool call. Returns the settings
 * that worked. Asks a person again until the test succeeds or the person chooses no model.
 */
export async function settleModel(
  answers: Answers,
  options: Options,
): Promise<{ row: StepRow; settings: ModelSettings }> {
  for (;;) {
    const base = await answerOf(answers, 'LLM_BASE_URL')
    if (base === undefined || base === 'none' || base === '') return { row: withoutModel(), settings: null }
    const found = await tryModel(answers, base, options)
    if (found.row.state !== 'failed' || !answers.canAsk) return found
    printRow(found.row)
    await askFor(answers, 'LLM_BASE_URL', base)
    if (answers.given.LLM_BASE_URL === 'none') continue
    await askFor(answers, 'LLM_MODEL', knownAnswer(answers, 'LLM_MODEL'))
    await askFor(answers, 'LLM_API_KEY_FILE', knownAnswer(answers, 'LLM_API_KEY_FILE') ?? 'none')
  }
}

const withoutModel = (): StepRow =>
  row('model', 'left out', 'no model: incidents wait for people', 'Run "nightshift setup" again when you have a model.')

type Tried = { row: StepRow; settings: ModelSettings }

async function tryModel(answers: Answers, given: string, { isDryRun, isQuiet, readers }: Options): Promise<Tried> {
  const failed = (detail: string, remedy: string): Tried => ({
    row: row('model', 'failed', detail, remedy),
    settings: null,
  })
  const baseUrl = withOneVersion(given)
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol))
    return failed(`${given} is no http(s) URL`, 'Write the address like http://gpu-1:8000/v1: --base-url.')
  const model = await answerOf(answers, 'LLM_MODEL')
  if (!model) return failed('the server needs the name of a model', 'Give --model NAME (LLM_MODEL).')
  const named = knownAnswer(answers, 'LLM_API_KEY') ? 'none' : await answerOf(answers, 'LLM_API_KEY_FILE', 'none')
  const keyFile = named === undefined || named === 'none' ? null : resolve(named)
  const key = keyFile === null ? { key: knownAnswer(answers, 'LLM_API_KEY') ?? '' } : readKey(keyFile, readers)
  if ('problem' in key) return failed(key.problem, 'Name a file that has only the key: --key-file.')
  const settings: Record<string, string> = {
    AGENT_ENABLED: 'true',
    LLM_BASE_URL: baseUrl,
    LLM_MODEL: model,
    ...(keyFile !== null && { LLM_API_KEY_FILE: keyFile }),
  }
  if (isDryRun)
    return { row: row('model', 'not yet', `${model} at ${baseUrl}: would be asked for one tool call`), settings }
  const protocol = knownAnswer(answers, 'LLM_PROTOCOL') === 'json' ? 'json' : 'native'
  if (!isQuiet) printNote(`Asking ${model} at ${baseUrl} for one tool call, ${answerMs / 1000} s at most.`)
  try {
    const temperature = Number(knownAnswer(answers, 'LLM_TEMPERATURE') ?? 0.1)
    const ports = openPorts({ baseUrl, model, apiKey: key.key, temperature })
    const asked = await askOneCall(ports, protocol, answerMs)
    if (asked.call === null && asked.answers === 0)
      return failed(
        `${baseUrl} did not return a valid response of a model: ${truncate(asked.fault ?? 'the response was empty', 200)}`,
        "Check --base-url. A proxy, a sign-in page or another program may answer at that address, or the model's server fails (see its log).",
      )
    if (asked.call === null)
      return failed(
        `${model} made no tool call: ${truncate(asked.fault ?? 'the response is text only', 200)}`,
        'Turn on tool calls at the server (docs/reference/models.md), or use another model.',
      )
    if (asked.protocol === 'json') settings.LLM_PROTOCOL = 'json'
    const renamed = baseUrl === given ? '' : ` (${given} had one version too many in its path)`
    return { row: row('model', 'works', `${describe(asked, model)}${renamed}`), settings }
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    return failed(error.what, error.remedy ?? 'Correct --base-url or --model.')
  }
}

/**
 * Corrects an address, because people paste addresses with `/v1` twice, or with the path of the
 * completions.
 */
function withOneVersion(url: string): string {
  return url
    .replace(/\/+$/, '')
    .replace(/\/(chat\/)?completions$|\/models$/, '')
    .replace(/(\/v\d+)(?:\1)+$/, '$1')
}

function describe(asked: OneCall, model: string): string {
  const { call, seconds, promptTokens, completionTokens, protocol } = asked
  const { isAssumed, ...price } = priceOf([model], [])
  const predicted = predict(asked, turns, isAssumed ? null : { input: price.in, output: price.out })
  const read =
    predicted === null
      ? ''
      : `, ${formatNumber(promptTokens)} tokens read and ${formatNumber(completionTokens)} written`
  const words = protocol === 'json' ? ' as JSON, because the server takes no tools' : ''
  const cost =
    predicted === null
      ? 'the server does not report token usage'
      : `an incident of ${turns} turns like this takes ${formatNumber(predicted.tokens)} tokens, ${predicted.cost === null ? 'and no price is known here' : `about $${predicted.cost.toPrecision(2)} at its list price`}`
  return `${model} called ${truncate(call ?? '', 80)}${words} in ${seconds} s${read}; ${cost}. Measure the model before you trust it: "nightshift model check"`
}
