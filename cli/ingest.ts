import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type Alert, explainedAlert, ingestOutcome } from '../domain/alert.ts'
import { type BodyHint, describeNearest } from '../domain/alert-body.ts'
import { takenChanges } from '../domain/change.ts'
import { incidentTypeOf } from '../domain/incident-type.ts'
import { snsTopic } from '../domain/sns-topic.ts'
import { describeEndReason, describeStateWord } from '../domain/unproven-end.ts'
import { dialectOf, dialects } from '../ingest/dialects.ts'
import { hintOf } from '../ingest/nearest.ts'
import { ApiProblem } from './api.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, formatTable, paintState, printList } from './ui/table.ts'
import { inert, paint, parseOneOf, print, printJson, printNote } from './ui/terminal.ts'

type Options = ConnectionOptions & { dialect: string; dryRun?: boolean; explain?: boolean }

const explained = z.looseObject({ alerts: z.array(explainedAlert), ignored: z.string().optional() })

const accepted = z.looseObject({
  ignored: z.string().optional(),
  alerts: z.array(
    z.looseObject({ fingerprint: z.string(), incidentId: z.string().nullable(), outcome: ingestOutcome }),
  ),
})

export function addIngestCommand(program: CliCommand): void {
  const parent = program
    .command('ingest')
    .description('incoming alerts and changes')
    .addHelpText('after', '\nExample:\n  nightshift ingest test alert.json --dry-run')
  parent
    .command('test')
    .description('post a file as a monitoring system would, or show how Nightshift reads the file')
    .argument('<file>', 'file with the request body; - for stdin')
    .option(
      '--dialect <name>',
      `format of the request body: ${Object.keys(dialects).join(', ')}`,
      parseOneOf(Object.keys(dialects)),
      'alertmanager',
    )
    .option(
      '--explain',
      'post nothing, but show what Nightshift would do with the file: type, severity, resource and why',
    )
    .option('-n, --dry-run', 'parse the file here and post nothing; Nightshift need not run')
    .connected('\nExample:\n  nightshift ingest test alert.json --explain\n  nightshift ingest test alert.json')
    .action(async (file: string, options: Options) => {
      const bytes = readBody(file)
      // Posts no alert with --explain or --dry-run. With both flags, --explain decides.
      if (options.explain) return await explainBody(bytes, options)
      if (options.dryRun) return printDryRun(bytes, options)
      await postAlerts(bytes, options)
    })
  addChangeCommand(parent)
  addTopicsCommand(parent)
}

const topic = snsTopic.loose()

/** Adds the commands for SNS topics. A topic sends no alarms until a person confirms it. */
function addTopicsCommand(parent: CliCommand): void {
  parent
    .command('topics')
    .description('topics of Amazon SNS: which topics wait for a person, and which may send alarms')
    .connected('\nExample:\n  nightshift ingest topics')
    .calls(async (api, options: ConnectionOptions) => {
      const { items } = z.object({ items: z.array(topic) }).parse(await api.get('/api/v1/sns/topics'))
      printList(options, items, 'No topics. Subscribe https://HOST/api/v1/ingest/cloudwatch to a topic.', {
        ID: ({ id }) => inert(id),
        TOPIC: ({ arn }) => inert(arn),
        STATE: (each) => describeTopic(each),
        ASKED: ({ askedAt }) => formatMoment(askedAt),
      })
    })
  for (const [name, description] of Object.entries(topicActs))
    parent
      .command(`${name}-topic`)
      .description(description)
      .argument('<id>', 'id of the topic, as "ingest topics" lists it')
      .connected(`\nExample:\n  nightshift ingest ${name}-topic 1`)
      .calls(async (api, id: string, options: ConnectionOptions) => {
        const done = await api.post(`/api/v1/sns/topics/${encodeURIComponent(id)}/${name}`)
        if (options.json) return printJson(done)
        print(
          `Topic ${inert(id)}: ${name === 'confirm' ? 'confirmed, may send alarms' : 'removed, may not send alarms'}.`,
        )
      })
}

const topicActs = {
  confirm: 'confirm the subscription of an SNS topic, and accept its alarms',
  remove: 'refuse the alarms of an SNS topic from now on',
} as const

function describeTopic({ isWaiting, confirmedBy }: z.infer<typeof topic>): string {
  if (isWaiting) return paint('bold', confirmedBy === null ? 'waits for you' : 'was unsubscribed')
  return `taken, by ${inert(confirmedBy ?? 'nobody')}`
}

const takenChange = takenChanges.shape.changes.element.extend({ outcome: z.string() })
const taken = takenChanges.extend({ changes: z.array(takenChange.loose()) }).loose()

function addChangeCommand(parent: CliCommand): void {
  parent
    .command('change')
    .description(
      'report a deployment or configuration change: { title, at, resources, labels, author, url, revision, environment }',
    )
    .argument('<file>', 'one change as JSON, or a list; - for stdin')
    .connected('\nExample:\n  nightshift ingest change deployed.json')
    .action(async (file: string, options: ConnectionOptions) => {
      const { api } = connect(options, 'ingest')
      const { changes, ignored } = taken.parse(await api.postBytes('/api/v1/ingest/change', readBody(file)))
      if (options.json) return printJson({ changes, ignored })
      const rows = changes.map(({ id, outcome, resource, why }) => [
        id,
        inert(outcome),
        inert(resource ?? `(none: ${why})`),
      ])
      if (rows.length > 0) print(formatTable(['ID', 'OUTCOME', 'RESOURCE'], rows, 2))
      if (ignored !== null) printNote(inert(ignored))
    })
}

function readBody(file: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(readFileSync(file === '-' ? 0 : file))
  } catch {
    throw new CommandFailed('notFound', `${file} cannot be read.`)
  }
}

function printDryRun(bytes: Uint8Array<ArrayBuffer>, options: Options): void {
  const parsed = dialectOf(options.dialect)?.parse(bytes, new Date().toISOString())
  if (!parsed?.ok) {
    const hint = printMapping(bytes)
    const nearest = hint ? describeNearest(hint) : ''
    throw new CommandFailed(
      'error',
      `This is not a request body of ${options.dialect} alerts: ${parsed?.reason}.${nearest}`,
    )
  }
  if (options.json) {
    printJson(parsed.alerts)
    return
  }
  print(formatAlerts(parsed.alerts))
  const notes = parsed.alerts.flatMap((alert) => [
    ...(alert.endReason === undefined ? [] : [`${alert.name}: no end: ${describeEndReason(alert.endReason)}`]),
    ...(alert.stateWord === undefined ? [] : [`${alert.name}: ${describeStateWord(alert.stateWord)}`]),
    ...(alert.severitySource === 'default'
      ? [`${alert.name}: no known severity, so the alert is a ${alert.severity}`]
      : []),
    ...(alert.cappedFields.length > 0 ? [`${alert.name}: shortened ${alert.cappedFields.join(', ')}`] : []),
    ...(alert.truncatedAlerts > 0 ? [`${alert.name}: its sender cut off ${alert.truncatedAlerts} alerts`] : []),
  ])
  for (const each of new Set(notes)) printNote(inert(each))
  if (parsed.ignored !== undefined) printNote(inert(`The request body contains no alert: ${parsed.ignored}`))
  printNote(`${formatAlertCount(parsed.alerts)}. Nothing was posted.`)
}

/** Prints which fields of an unknown body would have to be renamed for the format `generic`. */
function printMapping(bytes: Uint8Array): BodyHint | null {
  const hint = hintOf(bytes)
  for (const { path, field, value } of hint?.mapping ?? [])
    printNote(`  ${inert(path)} would be ${inert(field)}: ${inert(value)}`)
  return hint
}

async function explainBody(bytes: Uint8Array<ArrayBuffer>, options: Options): Promise<void> {
  const { api } = connect(options)
  const body = { dialect: options.dialect, body: new TextDecoder().decode(bytes) }
  const answer = await api.post('/api/v1/alerts/explain', body).catch((error) => {
    if (error instanceof ApiProblem && error.problem.code === 'UNPARSABLE' && !options.json) printMapping(bytes)
    throw error
  })
  const { alerts, ignored } = explained.parse(answer)
  if (options.json) return printJson(alerts)
  for (const alert of alerts) {
    print(`${alert.status}  ${paintState(alert.severity)}  ${inert(alert.title)}`)
    const lines = {
      type: alert.type,
      resource: alert.resource ?? '(none)',
      why: alert.why,
      becomes: `${becomes[alert.becomes]}${alert.incidentId ? ` ${alert.incidentId}` : ''}`,
      group: alert.groupKey ?? '',
      note: alert.notes.join('; '),
    }
    for (const [word, text] of Object.entries(lines)) if (text !== '') print(`  ${word.padEnd(9)} ${inert(text)}`)
    for (const { label, name, result } of alert.tried) print(`    ${label}=${inert(name)}: ${result}`)
  }
  if (ignored !== undefined) printNote(inert(`The request body contains no alert: ${ignored}`))
  printNote(`${formatAlertCount(alerts)}. Nothing was posted.`)
}

const becomes = {
  opens: 'opens an incident',
  repeats: 'repeats an alert of',
  ends: 'ends an alert of',
  unproven: 'sets to unknown an alert of',
  heartbeat: 'a heartbeat, whose silence opens an incident',
  nothing: 'nothing, because it ends an alert that never began',
} as const

function formatAlerts(alerts: Alert[]): string {
  const rows = alerts.map((alert) => [
    alert.status,
    paintState(alert.severity),
    inert(alert.fingerprint).slice(0, 16),
    inert(`${incidentTypeOf(alert.labels, alert.name)}: ${alert.name}: ${alert.title}`),
  ])
  return formatTable(['STATE', 'SEVERITY', 'FINGERPRINT', 'TYPE, ALERT'], rows, 3)
}

async function postAlerts(bytes: Uint8Array<ArrayBuffer>, options: Options): Promise<void> {
  const { api, target } = connect(options, 'ingest')
  const answer = accepted.parse(await api.postBytes(`/api/v1/ingest/${options.dialect}`, bytes))
  if (options.json) return printJson(answer)
  const rows = answer.alerts.map((each) => [
    inert(each.fingerprint).slice(0, 16),
    each.outcome,
    inert(each.incidentId ?? ''),
  ])
  if (rows.length > 0) print(formatTable(['FINGERPRINT', 'OUTCOME', 'INCIDENT'], rows, 2))
  if (answer.ignored !== undefined) printNote(inert(`The request body contains no alert: ${answer.ignored}`))
  printNote(`${formatAlertCount(answer.alerts)} accepted by ${target.url}.`)
}

function formatAlertCount({ length }: unknown[]): string {
  return length === 1 ? '1 alert' : `${length} alerts`
}
