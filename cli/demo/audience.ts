import type { Run } from '../../start/run-file.ts'
import { formatApproval } from '../approval-card.ts'
import { type ApiClient, readApproval } from '../core.ts'
import { inert } from '../inert.ts'
import { paint, print, terminalWidth } from '../terminal.ts'
import { formatMoment } from '../time.ts'
import { formatWaysToDecide } from '../ways-to-decide.ts'
import { paintState } from '../word.ts'
import { findTemporalProgram } from '../workflow-update.ts'
import type { Audience } from './play.ts'
import { printRemark } from './say.ts'
import { formatLiveRow } from './tell.ts'

/** Tells a play to the person at the terminal; at an approval also how to decide it. */
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
      const told = formatLiveRow(event, sinceIso)
      if (told) print(told)
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
  return paint('dim', '─'.repeat(Math.min(terminalWidth(), 80)))
}
