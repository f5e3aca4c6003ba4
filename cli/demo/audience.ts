import type { Run } from '../../start/run-file.ts'
import { type ApiApproval, type ApiClient, readApproval } from '../api.ts'
import { formatApproval } from '../approvals/card.ts'
import { findTemporalProgram, formatUpdateCommand } from '../approvals/temporal.ts'
import { commandLine } from '../connection.ts'
import { formatLiveRow } from '../incidents/timeline.ts'
import { defaultTemporal, readTemporalSettings } from '../probes.ts'
import { formatMoment, paintState } from '../ui/format.ts'
import { getTerminalWidth, paint, print } from '../ui/terminal.ts'
import { inert, wrap } from '../ui/text.ts'
import type { Audience } from './play.ts'

/** An audience that prints a play to the terminal, and at an approval how to decide it. */
export function createAudience(api: ApiClient, run: Run): Audience {
  return {
    broken: ({ fault, on }) =>
      print(
        `\n  ${paint('bold', `Broke ${fault} on ${on}`)} in the lab. Waiting for its prober to notice and post an alert.\n`,
      ),
    found: (incident) =>
      print(
        `           Incident ${inert(incident.id)}, ${paintState(incident.severity)}\n           ${inert(incident.title)}\n`,
      ),
    unclaimed: () =>
      printRemark(
        'Not claimed yet. The alert wakes the queue at once; if that got lost, its next tick is at most 60 s away.',
      ),
    remark: printRemark,
    async event(event, sinceIso) {
      const row = formatLiveRow(event, sinceIso)
      if (row) print(row)
      if (event.kind !== 'approval_requested') return
      const approval = await readApproval(api, event.metadata.approvalId)
      if (approval.status !== 'pending') return
      print(`\n${drawRule()}\n${formatApproval(approval)}\n${drawRule()}\n`)
      print(formatWaysToDecide(approval, run, await findTemporalProgram(run)))
      print(
        `\n${paint('bold', `Waiting for a person, until ${formatMoment(approval.expiresAt)}.`)} Nothing is held meanwhile.\n`,
      )
    },
  }
}

function drawRule(): string {
  return paint('dim', '─'.repeat(Math.min(getTerminalWidth(), 80)))
}

/** Prints a remark between the rows. */
export function printRemark(text: string): void {
  print(`  ${wrap(text, getTerminalWidth() - 2, '  ')}`)
}

/** The four ways to decide this approval, each ready to use. */
function formatWaysToDecide(approval: ApiApproval, run: Run, program: string): string {
  const id = approval.id
  const token = `$(${commandLine(`approvals token ${id} approve`)} 2>/dev/null)`
  const input = `"{\\"decision\\":\\"approve\\",\\"token\\":\\"${token}\\"}"`
  const temporal = readTemporalSettings(run) ?? defaultTemporal
  return [
    paint('bold', 'Four ways to decide, all of them judged by the same code:'),
    '',
    '  1. In the browser, signed in by the link above:',
    `     ${run.url}/approvals/${id}`,
    '',
    '  2. In another terminal:',
    `     ${commandLine(`approvals approve ${id}`)}`,
    `     ${commandLine(`approvals deny ${id} --reason "why not"`)}`,
    '',
    '  3. Over the API:',
    `     POST ${run.url}/api/v1/approvals/${id}/token { "decision": … }, then …/decision`,
    '',
    '  4. Through Temporal:',
    formatUpdateCommand(program, temporal, approval, input).replace(/^/gm, '     '),
  ].join('\n')
}
