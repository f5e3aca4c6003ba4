import type { Command } from 'commander'
import { closedStatuses, incidentStatus } from '../domain/incident.ts'
import { type Asking, asking, connected } from './connection.ts'
import { anApproval, anIncident, listAll } from './core.ts'
import { inert } from './inert.ts'
import { data, json, paint } from './terminal.ts'
import { span } from './time.ts'
import { command } from './where.ts'
import { word } from './word.ts'

/** Beyond this a count is not what a person wants to know. */
const countUpTo = 500

export function statusCommand(program: Command): void {
  asking(program.command('status').description('what is open, what waits for a person, where it runs'))
    .addHelpText('after', '\nExample:\n  nightshift status')
    .action(async (options: Asking) => {
      const { api, where } = connected(options)
      const open = incidentStatus.options.filter((status) => !closedStatuses.includes(status))
      const lists = await Promise.all(
        [...open, 'escalated' as const].map(async (status) => {
          const items = await listAll(api, `/api/v1/incidents?status=${status}&limit=100`, anIncident, countUpTo)
          return [status, items.length] as const
        }),
      )
      const pending = await listAll(api, '/api/v1/approvals?status=pending', anApproval, countUpTo)
      if (options.json) {
        return json({
          url: where.url,
          incidents: Object.fromEntries(lists),
          pendingApprovals: pending.map(({ id }) => id),
        })
      }
      data(`${paint('bold', 'Nightshift')} at ${where.url}`)
      for (const [status, count] of lists) {
        data(`  ${String(count).padStart(5)}${count === countUpTo ? '+' : ' '} ${word(status)}`)
      }
      for (const each of pending) {
        data(
          `\n  ${word('pending')} ${inert(each.dryRun.summary).slice(0, 60)}, expires in ${span(Date.parse(each.expiresAt) - Date.now())}`,
        )
        data(`    ${command(`approvals show ${each.id}`)}`)
      }
    })
}
