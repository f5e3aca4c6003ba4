import { InvalidArgumentError } from 'commander'
import { auditRow } from '../domain/audit.ts'
import { parseTime } from '../domain/format.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { listAll } from './read-api.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, parseWholeNumber } from './ui/terminal.ts'

export function addAuditCommand(program: CliCommand): void {
  const parent = program
    .command('audit')
    .description('who did what')
    .addHelpText('after', '\nExample:\n  nightshift audit list --who anna --what approval')
  addListCommand(parent)
}

// Accepts further fields, so that fields of a newer API still appear in --json.
const auditEntry = auditRow.pick({ at: true, who: true, what: true, subject: true, detail: true }).loose()

type ListOptions = ConnectionOptions & { who?: string; what?: string; since?: string; limit: number }

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('decisions, settings, tokens, people, sign-ins and what looked like an attack, newest first')
    .option('--who <name>', 'only actions of this person')
    .option(
      '--what <word>',
      'only this kind, such as token.revoked, or its first part: approval, config, device, grant, incident, operator, security, sign_in, token',
    )
    .option('--since <time>', 'since this time, such as 2026-11-21 or 2026-11-21T01:00:00Z', parseMoment)
    .option('--limit <n>', 'how many at most', parseWholeNumber, 50)
    .connected('\nExample:\n  nightshift audit list --what sign_in.refused\n  nightshift audit list --who anna --json')
    .calls(async (api, { who, what, since, limit, ...options }: ListOptions) => {
      const asked = Object.entries({ who, what, since }).filter(
        (pair): pair is [string, string] => pair[1] !== undefined,
      )
      const query = new URLSearchParams([...asked, ['limit', String(Math.min(limit, 200))]])
      const entries = await listAll(api, `/api/v1/audit?${query}`, auditEntry, limit)
      printList(options, entries, 'Nothing.', {
        WHEN: (each) => formatMoment(each.at),
        WHO: (each) => inert(each.who),
        WHAT: (each) => inert(each.what),
        ABOUT: (each) => inert(each.subject),
        DETAIL: (each) => inert(each.detail),
      })
    })
}

function parseMoment(text: string): string {
  const at = parseTime(text)
  if (Number.isNaN(at))
    throw new InvalidArgumentError('Write a time on a day that exists, such as 2026-11-21T01:00:00Z.')
  return new Date(at).toISOString()
}
