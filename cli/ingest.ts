import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { type Alert, ingestOutcome } from '../domain/alert.ts'
import { dialectOf, dialects } from '../ingest/dialects.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { CommandFailed } from './errors.ts'
import { paintState } from './ui/format.ts'
import { parseOneOf } from './ui/options.ts'
import { formatTable } from './ui/table.ts'
import { print, printJson, printNote } from './ui/terminal.ts'
import { inert } from './ui/text.ts'

type Options = ConnectionOptions & { dialect: string; dryRun?: boolean }

const accepted = z.looseObject({
  alerts: z.array(
    z.looseObject({ fingerprint: z.string(), incidentId: z.string().nullable(), outcome: ingestOutcome }),
  ),
})

export function addIngestCommand(program: Command): void {
  const parent = program
    .command('ingest')
    .description('incoming alerts')
    .addHelpText('after', '\nExample:\n  nightshift ingest test alert.json --dry-run')
  withConnectionOptions(
    parent
      .command('test')
      .description('post a file as an alert source would, or show how it is read')
      .argument('<file>', 'the body; - for stdin')
      .option(
        '--dialect <name>',
        `format of the body: ${Object.keys(dialects).join(', ')}`,
        parseOneOf(Object.keys(dialects)),
        'alertmanager',
      )
      .option('-n, --dry-run', 'parse it here and post nothing; needs nothing running'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift ingest test alert.json --dry-run\n  nightshift ingest test alert.json',
    )
    .action(async (file: string, options: Options) => {
      const bytes = readBody(file)
      if (options.dryRun) return printDryRun(bytes, options)
      await postAlerts(bytes, options)
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
  if (!parsed?.ok)
    throw new CommandFailed('error', `This is not a body of ${options.dialect} alerts: ${parsed?.reason}`)
  if (options.json) {
    printJson(parsed.alerts)
    return
  }
  print(formatAlerts(parsed.alerts))
  const notes = parsed.alerts.flatMap((alert) => [
    ...(alert.severitySource === 'default' ? [`${alert.name}: no known severity, so it is a ${alert.severity}`] : []),
    ...(alert.cappedFields.length > 0 ? [`${alert.name}: shortened ${alert.cappedFields.join(', ')}`] : []),
    ...(alert.truncatedAlerts > 0 ? [`${alert.name}: its sender cut off ${alert.truncatedAlerts} alerts`] : []),
  ])
  for (const each of new Set(notes)) printNote(inert(each))
  printNote(`${formatAlertCount(parsed.alerts)}. Nothing was posted.`)
}

function formatAlerts(alerts: Alert[]): string {
  const rows = alerts.map((alert) => [
    alert.status,
    paintState(alert.severity),
    inert(alert.fingerprint).slice(0, 16),
    inert(`${alert.name}: ${alert.title}`),
  ])
  return formatTable(['STATE', 'SEVERITY', 'FINGERPRINT', 'ALERT'], rows, 3)
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
  print(formatTable(['FINGERPRINT', 'OUTCOME', 'INCIDENT'], rows, 2))
  printNote(`${formatAlertCount(answer.alerts)} accepted by ${target.url}.`)
}

function formatAlertCount({ length }: unknown[]): string {
  return length === 1 ? '1 alert' : `${length} alerts`
}
