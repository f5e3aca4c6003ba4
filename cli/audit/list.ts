import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { whole } from '../one-of.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'

// Loose, so that what a newer API adds still reaches --json.
const entry = z.looseObject({
  at: z.string(),
  who: z.string(),
  what: z.string(),
  subject: z.string(),
  detail: z.string(),
})

type Options = Asking & { who?: string; what?: string; since?: string; limit: number }

export function listAudit(parent: Command): void {
  asking(
    parent
      .command('list')
      .description('decisions, settings, tokens, people, sign-ins and what looked like an attack, newest first')
      .option('--who <name>', 'of this person alone')
      .option(
        '--what <word>',
        'as token.revoked, or its first part: approval, config, device, grant, incident, operator, security, sign_in, token',
      )
      .option('--since <time>', 'from then on, as 2026-11-21 or 2026-11-21T01:00:00Z', time)
      .option('--limit <n>', 'how many at most', whole, 50),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift audit list --what sign_in.refused\n  nightshift audit list --who anna --json',
    )
    .action(async ({ who, what, since, limit, ...options }: Options) => {
      const { api } = connected(options)
      const asked = Object.entries({ who, what, since }).filter(
        (pair): pair is [string, string] => pair[1] !== undefined,
      )
      const query = new URLSearchParams([...asked, ['limit', String(Math.min(limit, 200))]])
      const entries = await listAll(api, `/api/v1/audit?${query}`, entry, limit)
      if (options.json) return json(entries)
      if (entries.length === 0) return note('Nothing.')
      const rows = entries.map((each) => [
        moment(each.at),
        inert(each.who),
        inert(each.what),
        inert(each.subject),
        inert(each.detail),
      ])
      data(table(['WHEN', 'WHO', 'WHAT', 'ABOUT', 'DETAIL'], rows, 4))
    })
}

function time(text: string): string {
  const at = new Date(text)
  if (Number.isNaN(at.getTime())) throw new InvalidArgumentError('It takes a time, as 2026-11-21T01:00:00Z.')
  return at.toISOString()
}
