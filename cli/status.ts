import { formatSpan } from '../domain/format.ts'
import { closedStatuses, incidentStatus } from '../domain/incident.ts'
import { type CliCommand, type ConnectionOptions, commandLine, connect } from './connection.ts'
import { apiApproval, apiIncident, listAll } from './read-api.ts'
import { paintState } from './ui/table.ts'
import { inert, paint, print, printJson } from './ui/terminal.ts'

/** The highest number of incidents or approvals that is counted. More is shown as `500+`. */
const countUpTo = 500

export function addStatusCommand(program: CliCommand): void {
  program
    .command('status')
    .description('open incidents, what waits for a person, and the addresses of this site')
    .connected('\nExample:\n  nightshift status')
    .action(async (options: ConnectionOptions) => {
      const { api, target } = connect(options)
      const open = incidentStatus.options.filter((status) => !closedStatuses.includes(status))
      const lists = await Promise.all(
        [...open, 'escalated' as const].map(async (status) => {
          const items = await listAll(api, `/api/v1/incidents?status=${status}&limit=100`, apiIncident, countUpTo)
          return [status, items.length] as const
        }),
      )
      const pending = await listAll(api, '/api/v1/approvals?status=pending', apiApproval, countUpTo)
      if (options.json) {
        return printJson({
          url: target.url,
          incidents: Object.fromEntries(lists),
          pendingApprovals: pending.map(({ id }) => id),
        })
      }
      print(`${paint('bold', 'Nightshift')} at ${target.url}`)
      for (const [status, count] of lists) {
        print(`  ${String(count).padStart(5)}${count === countUpTo ? '+' : ' '} ${paintState(status)}`)
      }
      for (const each of pending) {
        print(
          `\n  ${paintState('pending')} ${inert(each.dryRun.summary).slice(0, 60)}, expires in ${formatSpan(Date.parse(each.expiresAt) - Date.now())}`,
        )
        print(`    ${commandLine(`approvals show ${each.id}`)}`)
      }
    })
}
