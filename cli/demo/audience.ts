import type { Run } from '../../start/run-file.ts'
import { approvalCard } from '../approval-card.ts'
import { type Core, readApproval } from '../core.ts'
import { inert } from '../inert.ts'
import { data, paint, width } from '../terminal.ts'
import { moment } from '../time.ts'
import { waysToDecide } from '../ways-to-decide.ts'
import { word } from '../word.ts'
import { temporalProgram } from '../workflow-update.ts'
import type { Audience } from './play.ts'
import { say } from './say.ts'
import { tell } from './tell.ts'

/** Tells a play to the person at the terminal; at an approval also how to decide it. */
export function audience(api: Core, run: Run): Audience {
  return {
    broken: ({ fault, on }) =>
      data(
        `\n  ${paint('bold', `Broke ${fault} on ${on}`)} in the lab. Waiting for its prober to notice and post an alert.\n`,
      ),
    found: (incident) =>
      data(
        `           Incident ${inert(incident.id)}, ${word(incident.severity)}\n           ${inert(incident.title)}\n`,
      ),
    unclaimed: () =>
      say('Not claimed yet. The alert wakes the queue at once; if that got lost, its next tick is at most 60 s away.'),
    remark: say,
    async event(event, sinceIso) {
      const told = tell(event, sinceIso)
      if (told) data(told)
      if (event.kind !== 'approval_requested') return
      const approval = await readApproval(api, event.metadata.approvalId)
      if (approval.status !== 'pending') return
      data(`\n${rule()}\n${approvalCard(approval)}\n${rule()}\n`)
      data(waysToDecide(approval, run, await temporalProgram(run)))
      data(
        `\n${paint('bold', `Waiting for a person, until ${moment(approval.expiresAt)}.`)} Nothing is held meanwhile.\n`,
      )
    },
  }
}

function rule(): string {
  return paint('dim', '─'.repeat(Math.min(width(), 80)))
}
