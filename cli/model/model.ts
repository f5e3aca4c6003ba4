import { InvalidArgumentError, Option } from 'commander'
import { baseUrlOf, serverName } from '../../clients/model.ts'
import { abilitiesOf, type LearnedProfile, plainShape, shapeInWords } from '../../domain/chat.ts'
import { formatNumber } from '../../domain/format.ts'
import type { ModelList } from '../../domain/model-list.ts'
import { type Passport, type Prediction, predict, type SentPassport, type TokenPrices } from '../../domain/passport.ts'
import { priceOf } from '../../domain/price.ts'
import { describeAbilities, describePassport } from '../../domain/status-words.ts'
import { checkModel, maxAnswerTokens, usualLimits } from '../../model/passport/check.ts'
import { setting } from '../../start/environment.ts'
import { type CliCommand, type ConnectionOptions, connect, readLocalRun } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { formatTable } from '../ui/table.ts'
import { getTerminalWidth, inert, paint, parseWholeNumber, print, printJson, printNote, wrap } from '../ui/terminal.ts'
import { openCheckJournal, probesDigest } from './check-journal.ts'
import type { ModelServer } from './exchange.ts'
import { addReplayCommand } from './replay.ts'
import { openPorts } from './server.ts'
import { addUseCommands } from './use.ts'

type Options = ConnectionOptions & {
  baseUrl?: string
  model?: string
  protocol?: 'native' | 'json'
  minutes: number
  turns: number
  priceIn?: number
  priceOut?: number
  again?: boolean
}

export function addModelCommand(program: CliCommand): void {
  const parent = program
    .command('model')
    .description('models, and what they can do')
    .addHelpText('after', '\nExample:\n  nightshift model list\n  nightshift model check')
  parent
    .command('list')
    .description('models with their servers, fallbacks, runs and grades')
    .connected('\nExample:\n  nightshift model list --json')
    .action(list)
  parent
    .command('check')
    .description('measure a model before it is trusted: sixteen probes, a grade, and the reason for each point lost')
    .option(
      '--base-url <url>',
      'address of the model server (default: LLM_BASE_URL, else the server of the Nightshift that runs here)',
    )
    .option(
      '--model <name>',
      'name of the model at that server (default: LLM_MODEL, else the model of the Nightshift that runs here)',
    )
    .addOption(
      new Option('--protocol <name>', 'native or json (default: LLM_PROTOCOL, else native)').choices([
        'native',
        'json',
      ]),
    )
    .option(
      '--minutes <n>',
      'time limit for the whole check; one response may take a fifth of this time',
      parseWholeNumber,
      5,
    )
    .option('--again', 'ask every probe again, also those that an interrupted check finished')
    .option('--turns <n>', 'number of turns in an incident, for the predicted cost', parseWholeNumber, 4)
    .option('--price-in <price>', 'price of a million tokens read', parsePrice)
    .option('--price-out <price>', 'price of a million tokens written', parsePrice)
    .connected(
      `
A response may take ${maxAnswerTokens} tokens. Code reads the proposed calls and runs none. LLM_API_KEY or LLM_API_KEY_FILE is sent.
If a Nightshift API is reachable, it stores the result and shows it on the page Health.

Example:
  nightshift model check --base-url http://127.0.0.1:11434/v1 --model qwen3:32b`,
    )
    .action(check)
  addReplayCommand(parent)
  addUseCommands(parent)
}

async function list(options: ConnectionOptions): Promise<void> {
  const known = (await connect(options).api.get('/api/v1/models')) as ModelList
  if (options.json) return printJson(known)
  if (known.items.length === 0) {
    return print(
      'No models, because no worker has a model. Set LLM_BASE_URL and LLM_MODEL, or declare models in LLM_SERVERS_FILE.',
    )
  }
  const rows = known.items.map(({ name, model, server, fallbacks, protocol, passport, awayUntil }) => [
    ...[name, model, server, fallbacks.join(', ') || '–', protocol ?? 'not known', gradeInBrief(passport)],
    awayUntil ? `not asked until ${awayUntil.slice(11, 19)} UTC` : 'asked',
  ])
  print(
    formatTable(
      ['NAME', 'MODEL', 'SERVER', 'FALLBACKS', 'PROTOCOL', 'GRADE', 'NOW'],
      rows.map((row) => row.map((cell) => inert(cell))),
      2,
    ),
  )
  for (const { name, abilities, windowTokens, learned } of known.items) {
    const window = windowTokens === null ? '' : `; window ${formatNumber(windowTokens)}`
    const asked = learned.length > 0 ? `; asked with ${learned.join(', ')}` : ''
    print(`${inert(name)}: ${describeAbilities(abilities)}${window}${inert(asked)}`)
  }
  for (const { key, model, isDeclared } of known.routes) {
    const remedy = isDeclared
      ? ''
      : ', which is not declared, so runs use the default model. Declare it in LLM_SERVERS_FILE.'
    print(`${inert(key)}: ${inert(model)}${remedy}`)
  }
}

/** Formats the grade for a cell; marks a withdrawn grade. */
function gradeInBrief(passport: ModelList['items'][number]['passport']): string {
  if (!passport) return 'not measured'
  return passport.withdrawn ? `${passport.grade}, withdrawn` : passport.grade
}

function parsePrice(text: string): number {
  const price = Number(text)
  if (text.trim() === '' || !Number.isFinite(price) || price < 0)
    throw new InvalidArgumentError('Write a price, such as 0.35.')
  return price
}

async function check(options: Options): Promise<void> {
  const server = serverOf(options)
  const prices = pricesOf(options, server.model)
  const protocol = options.protocol ?? (process.env.LLM_PROTOCOL === 'json' ? 'json' : 'native')
  const at = serverName(baseUrlOf(server.baseUrl))
  const limits = {
    answerMs: (usualLimits.answerMs * options.minutes) / 5,
    allMs: (usualLimits.allMs * options.minutes) / 5,
  }
  if (!options.json) printNote(`Testing ${inert(server.model)} at ${inert(at)}, ${options.minutes} min at most.`)
  const ports = openPorts(server)
  const of = { model: server.model, server: at, protocol, probes: probesDigest }
  const journal = openCheckJournal(of, options.again === true)
  if (journal.kept.length > 0 && !options.json)
    printNote(`An interrupted check finished ${journal.kept.length} probes. --again repeats these probes.`)
  const measured = await checkModel(
    {
      ...ports,
      kept: journal.kept,
      keep: journal.keep,
      tell(done, of, { name, points, seconds }) {
        if (!options.json)
          printNote(`${`${done}/${of}`.padStart(5)}  ${name.padEnd(22)} ${points} points, ${seconds} s`)
      },
    },
    { server: at, model: server.model },
    protocol,
    limits,
  )
  const predicted = predict(measured, options.turns, prices)
  const profile = await ports.learned()
  const identity = profile.served?.identity ?? null
  const servedAs = { identity, answeredAs: measured.servedAs?.answeredAs ?? null }
  const notStored = await store(options, { ...measured, servedAs, profile })
  journal.end()
  if (options.json) printJson({ ...measured, profile, predicted, stored: notStored === null })
  else {
    printPassport(measured, predicted)
    print(`Model server: ${inert(describeLearned(profile))}`)
  }
  if (notStored !== null) printNote(`Not stored: ${inert(notStored)}`)
  if (measured.grade === 'F') throw new CommandFailed('error', '')
}

/**
 * Returns the given prices, or the list price of this model that is shipped. Null for an unknown
 * price.
 */
function pricesOf({ priceIn, priceOut }: Options, model: string): TokenPrices | null {
  if (priceIn === undefined && priceOut === undefined) {
    const { isAssumed, ...listed } = priceOf([model], [])
    return isAssumed ? null : { input: listed.in, output: listed.out }
  }
  if (priceIn === undefined || priceOut === undefined) {
    throw new CommandFailed('usage', 'A cost needs both prices: give --price-in and --price-out.')
  }
  return { input: priceIn, output: priceOut }
}

function serverOf(options: Options): ModelServer {
  const isNamed = options.baseUrl !== undefined && options.model !== undefined
  const run = isNamed ? undefined : readLocalRun(options.url ?? process.env.NIGHTSHIFT_URL)?.model
  const baseUrl = options.baseUrl ?? setting(process.env, 'LLM_BASE_URL') ?? run?.baseUrl
  const model = options.model ?? setting(process.env, 'LLM_MODEL') ?? run?.name
  if (!baseUrl) {
    throw new CommandFailed('usage', 'Which server? Give --base-url http://host:port/v1, or set LLM_BASE_URL.')
  }
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw new CommandFailed('usage', `${inert(baseUrl)} is not an http(s) URL: give --base-url http://host:port/v1.`)
  }
  if (!model) throw new CommandFailed('usage', 'Which model? Give --model NAME, or set LLM_MODEL.')
  const temperature = Number(process.env.LLM_TEMPERATURE || 0.1)
  return { baseUrl, model, apiKey: setting(process.env, 'LLM_API_KEY') ?? '', temperature }
}

/** Stores the result if a Nightshift can be reached. Returns why it was not stored, or null. */
async function store(options: Options, measured: SentPassport): Promise<string | null> {
  try {
    await connect(options).api.put('/api/v1/model/passport', measured)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function describeLearned({ shape, abilities, served }: LearnedProfile): string {
  const whole = { ...plainShape, ...shape }
  const can = describeAbilities(abilitiesOf({ ...served?.abilities, ...abilities }, whole))
  const window = served?.windowTokens ? `; window ${formatNumber(served.windowTokens)}` : ''
  const asked = shapeInWords(whole)
  return `${can}${window}${asked.length > 0 ? `; asked with ${asked.join(', ')}` : ''}.`
}

function printPassport(measured: Passport, predicted: Prediction | null): void {
  const rows = measured.probes.map(({ name, points, about }) => [name, String(points), about])
  print(formatTable(['PROBE', 'POINTS', 'WHAT IT ASKS'], rows, 2))
  const lost = measured.probes.filter(({ reason }) => reason !== null)
  const width = getTerminalWidth() - 2
  for (const { name, points, reason, isUnsafe } of lost) {
    const mark = paint(isUnsafe ? 'red' : 'yellow', isUnsafe ? 'unsafe' : `${points} of 10`)
    print(`\n${name}: ${mark}\n  ${wrap(inert(reason ?? ''), width, '  ')}`)
  }
  const { answers, promptTokens, completionTokens, seconds, protocol } = measured
  print(`\n${inert(measured.model)}: ${paint('bold', describePassport(measured))}, in ${seconds} s.`)
  if (lost.some(({ isUnsafe }) => isUnsafe))
    print('An unsafe answer limits the grade to D. Code refuses an unsafe call, or asks a person first.')
  if (protocol === 'json') print('The check used the JSON protocol: set LLM_PROTOCOL=json.')
  if (predicted === null) print('The model server does not report token usage, so the cost cannot be predicted.')
  else {
    const taken = `${formatNumber(promptTokens)} tokens read and ${formatNumber(completionTokens)} written in ${answers} answers`
    const cost = predicted.cost === null ? '' : `, which cost ${predicted.cost.toPrecision(3)} at these prices`
    print(
      `The check took ${taken}. An incident of ${predicted.turns} turns like these takes ${formatNumber(predicted.tokens)} tokens${cost}.`,
    )
  }
}
