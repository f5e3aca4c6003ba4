import { version } from '../../domain/version.ts'
import { setting } from '../../start/environment.ts'
import { createApiClient } from '../api.ts'
import { type CliCommand, readLocalRun } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { confirm, parseSeconds, parseWholeNumber, printJson, printNote } from '../ui/terminal.ts'
import { type AnswerName, type Answers, knownAnswer, questions, readAnswers, refuseMissing } from './answers.ts'
import { readEnvFile, type Values } from './env-file.ts'
import { settleModel } from './model-step.ts'
import { checkWritable, findPlace, type SiteFiles } from './place.ts'
import { isNightshift, localUrl, planSecrets, problemsOf, settleAddress, writeSite } from './site-steps.ts'
import { printRow, row, type StepRow } from './steps.ts'
import { applySchema, applyTemporal, settleDatabase, settleTemporal } from './store-steps.ts'
import { addTemporalCommand } from './temporal.ts'
import { tryAlert } from './try-alert.ts'

type Flags = {
  baseUrl?: string
  model?: string | false
  keyFile?: string
  databaseUrl?: string
  ownerUrl?: string
  temporalAddress?: string
  temporalNamespace?: string
  publicUrl?: string
  port?: number
  answers?: string
  settings?: string
  replace?: boolean
  alert: boolean
  again?: boolean
  wait: number
  dryRun?: boolean
  json?: boolean
}

export function addSetupCommand(program: CliCommand): void {
  const parent = program
    .command('setup')
    .description(
      'ask for model, database, Temporal and address, test each, write the settings, and send one test alert',
    )
    .enablePositionalOptions()
    .option('--base-url <url>', `${questions.LLM_BASE_URL.asks} (LLM_BASE_URL)`)
    .option('--model <name>', `${questions.LLM_MODEL.asks} (LLM_MODEL)`)
    .option('--no-model', 'no model yet: incidents wait for people')
    .option('--key-file <file>', 'a file with the key of the model (LLM_API_KEY_FILE)')
    .option(
      '--database-url <url>',
      'PostgreSQL, with the login of the services; put a password in --answers instead (DATABASE_URL)',
    )
    .option(
      '--owner-url <url>',
      'the same database, with the login that owns it; used only for the schema, never stored (MIGRATE_DATABASE_URL)',
    )
    .option('--temporal-address <host:port>', 'Temporal (TEMPORAL_ADDRESS)')
    .option('--temporal-namespace <name>', 'its namespace (TEMPORAL_NAMESPACE)')
    .option('--public-url <url>', 'the address that people and agents use (PUBLIC_URL)')
    .option('--port <n>', 'the port of the API (PORT)', parseWholeNumber)
    .option('--answers <file>', 'file with a line NAME=value for each setting; - for stdin')
    .option('--settings <file>', 'the file of settings, instead of the file of this installation')
    .option('--replace', 'replace values in the file that differ from the answers; the old file is kept')
    .option('--no-alert', 'send no test alert')
    .option('--again', 'send a test alert, even if one was sent before')
    .option('--wait <seconds>', 'how long a test alert is followed', parseSeconds, 180)
    .option('--dry-run', 'check, print what would be done, and change nothing')
    .option('--json', 'JSON for programs')
    .addHelpText('after', help)
    .action(async (flags: Flags) => await runSetup(flags))
  addTemporalCommand(parent)
}

const help = `
At a terminal the command asks for each value that no flag, no --answers, no setting in the file and no variable
gives. Without a terminal it exits with 2 and names the flag. A second run prints what exists, and continues.
The model is asked for one tool call. A secret is shown nowhere.

Example:
  nightshift setup
  nightshift setup --answers site.env --dry-run
  nightshift setup --base-url http://127.0.0.1:11434/v1 --model qwen3:32b`

async function runSetup(flags: Flags): Promise<void> {
  const { dryRun: isDryRun = false, json: isJson = false } = flags
  const place = findPlace(flags.settings)
  checkWritable(place)
  const answers = readAnswers(place, answersOf(flags), flags.answers)
  refuseUnanswered(answers, place)
  const rows: StepRow[] = []
  const tell = (each: StepRow): StepRow => {
    rows.push(each)
    if (!isJson) printRow(each)
    return each
  }
  await settleAll({ flags, place, answers, tell, isDryRun, isJson })
  if (isJson) printJson({ dryRun: isDryRun, version, file: place.envFile, rows })
  if (rows.some(({ state }) => state === 'failed')) throw new CommandFailed('error', '')
}

type Run = {
  flags: Flags
  place: SiteFiles
  answers: Answers
  tell(each: StepRow): StepRow
  isDryRun: boolean
  isJson: boolean
}

/** Checks all steps before it writes anything, because nothing is written after a failed check. */
async function settleAll(run: Run): Promise<void> {
  const { answers, place, tell, isDryRun, isJson } = run
  const model = await settleModel(answers, { isDryRun, isQuiet: isJson, readers: place.readers })
  tell(model.row)
  const database = await settleDatabase(answers, place)
  tell(database.row)
  const temporal = await settleTemporal(answers, place, database.site)
  tell(temporal.row)
  const address = await settleAddress(answers, place)
  tell(address.row)
  if ([model, database, temporal, address].some(({ row: { state } }) => state === 'failed')) {
    if (!isJson) printNote('Nothing was written. Correct the steps that failed, and run setup again.')
    return
  }
  const found = { ...model.settings, ...database.settings, ...temporal.settings, ...address.settings }
  if (tell(await writeSettings(run, { ...othersOf(answers), ...found })).state === 'failed') return
  if (database.ownerUrl !== null || database.missing > 0) {
    if (tell(await applySchema(database, isDryRun)).state === 'failed') return
  }
  if (temporal.isGiven && !isDryRun && temporal.row.state !== 'there') {
    if (tell(await applyTemporal(answers, temporal, database.site)).state === 'failed') return
  }
  tell(await sendTestAlert(run))
}

/** Returns the settings in the answers file for which no step asks. */
function othersOf({ given }: Answers): Values {
  const asked = new Set(Object.keys(questions))
  return Object.fromEntries(Object.entries(given).filter(([name]) => !asked.has(name)))
}

async function writeSettings({ flags, place, answers, isDryRun, isJson }: Run, found: Values): Promise<StepRow> {
  const { kept, given, typed } = answers
  // Keeps a setting in the file, such as AGENT_ENABLED=false, unless this run got a value for it.
  const settings = Object.fromEntries(
    Object.entries(found).filter(
      ([name, value]) => kept[name] !== value && (kept[name] === undefined || given[name] !== undefined),
    ),
  )
  const problems = problemsOf(answers, settings)
  if (problems.length > 0)
    return row('settings', 'failed', problems.join('; '), 'Correct these settings. Nothing was written.')
  const replaced = Object.keys(settings).filter((name) => kept[name] !== undefined && !typed.has(name))
  if (replaced.length > 0 && !flags.replace && !isDryRun) {
    const question = `${place.envFile} has other values for ${replaced.join(', ')}. Replace them?`
    if (!answers.canAsk || !(await confirm(question)))
      throw new CommandFailed(
        'usage',
        `${place.envFile} has other values for ${replaced.join(', ')}: give --replace to change them. Nothing was written.`,
      )
  }
  const secrets = planSecrets(answers, place)
  const names = [...Object.keys(settings), ...Object.keys(secrets.settings), ...Object.keys(secrets.apiSettings)]
  if (names.length === 0) return row('settings', 'there', place.envFile)
  if (isDryRun) return row('settings', 'would be written', `${place.envFile}: ${names.join(', ')}`)
  const { made, kept: before } = writeSite(place, { settings, secrets })
  const more = [made.length > 0 ? `; made ${made.join(', ')}` : '', before ? `; the old file is ${before}` : '']
  if (!isJson && (await isNightshift(localUrl(answers))))
    printNote('Nightshift runs already: it uses these settings after its next start.')
  return row('settings', 'written', `${place.envFile}: ${names.join(', ')}${more.join('')}`)
}

/** Finds the API of this site, and two tokens for the API. Null without an API or a token. */
function findApi(place: SiteFiles, answers: Answers): { url: string; admin: string; ingest: string } | null {
  const run = place.isCheckout ? (readLocalRun(localUrl(answers)) ?? readLocalRun()) : null
  if (run && run.labUrl === null && run.tokens.admin)
    return { url: run.url, admin: run.tokens.admin, ingest: run.tokens.ingest ?? run.tokens.admin }
  if (place.isCheckout) return null
  const held = { ...answers.kept, ...planSecrets(answers, place).settings }
  const admin = setting(held, 'BOOTSTRAP_ADMIN_TOKEN')
  const ingest = setting(held, 'BOOTSTRAP_INGEST_TOKEN') ?? admin
  return admin && ingest ? { url: localUrl(answers), admin, ingest } : null
}

async function sendTestAlert({ flags, place, answers, isDryRun, isJson }: Run): Promise<StepRow> {
  if (!flags.alert) return row('test alert', 'left out', 'by --no-alert')
  const start = `Start Nightshift: "${place.startLine}". Then run "nightshift setup" again, which sends the alert.`
  if (isDryRun) return row('test alert', 'not yet', 'a test alert would be sent if an API answered')
  const api = findApi(place, { ...answers, kept: readEnvFile(place.envFile) })
  if (!api || !(await isNightshift(api.url)))
    return row('test alert', 'not yet', `no API answers at ${api?.url ?? localUrl(answers)}`, start)
  const client = (token: string) => createApiClient({ url: api.url, token, run: null })
  const trial = {
    api: client(api.admin),
    sender: client(api.ingest),
    publicUrl: knownAnswer(answers, 'PUBLIC_URL') ?? api.url,
    waitMs: flags.wait * 1000,
    isQuiet: isJson,
  }
  if (!isJson)
    printNote('Sending one test alert. Its text states that it is a test, and setup closes its incident at the end.')
  return await tryAlert(trial, { isAgain: flags.again === true })
}

function answersOf(flags: Flags): Values {
  const given: [AnswerName, string | undefined][] = [
    ['LLM_BASE_URL', flags.model === false ? 'none' : flags.baseUrl],
    ['LLM_MODEL', typeof flags.model === 'string' ? flags.model : undefined],
    ['LLM_API_KEY_FILE', flags.keyFile],
    ['DATABASE_URL', flags.databaseUrl],
    ['MIGRATE_DATABASE_URL', flags.ownerUrl],
    ['TEMPORAL_ADDRESS', flags.temporalAddress],
    ['TEMPORAL_NAMESPACE', flags.temporalNamespace],
    ['PUBLIC_URL', flags.publicUrl],
    ['PORT', flags.port === undefined ? undefined : String(flags.port)],
  ]
  return Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

function refuseUnanswered(answers: Answers, { isCheckout }: SiteFiles): void {
  if (answers.canAsk) return
  const base = knownAnswer(answers, 'LLM_BASE_URL')
  const needed: AnswerName[] = [
    'LLM_BASE_URL',
    ...(base !== undefined && base !== 'none' ? (['LLM_MODEL'] as const) : []),
    ...(isCheckout ? [] : (['DATABASE_URL', 'TEMPORAL_ADDRESS', 'PUBLIC_URL'] as const)),
  ]
  const missing = needed.filter((name) => knownAnswer(answers, name) === undefined)
  const isOnlyModel = missing.length === 1 && missing[0] === 'LLM_BASE_URL'
  if (isOnlyModel)
    throw new CommandFailed(
      'usage',
      'There is no terminal to ask at, and no model is given: give --base-url and --model (LLM_BASE_URL, LLM_MODEL), or --no-model. Nothing was changed.',
    )
  refuseMissing(missing)
}
