import type { Approval } from './approval.ts'

/** What each answer leads to, a few sentences each: read before a person decides. The texts hold a stranger's words. */
export type Consequences = { approve: string; deny: string; wait: string }

type Asked = Pick<Approval, 'tool' | 'targets' | 'dryRun' | 'reversible' | 'required' | 'approvals' | 'expiresAt'>

const namedTargets = 3

/** From what is stored with the approval alone; `moment` writes a time as its reader reads times. */
export function tellConsequences(approval: Asked, moment: (iso: string) => string): Consequences {
  return {
    approve: tellApproval(approval),
    deny: 'Nothing is changed. The agent reads your reason and looks for another way, or hands over to people. It cannot ask for this action again.',
    wait: `Nothing is changed. The question expires at ${moment(approval.expiresAt)}, and the incident is escalated to people.`,
  }
}

function tellApproval({ tool, targets, dryRun, reversible, required, approvals }: Asked): string {
  const missing = required - approvals
  const others = missing - 1
  const when = others > 0 ? `Once ${others === 1 ? 'another person approves' : `${others} more approve`}, the` : 'The'
  return [
    `${when} targets are read again. If they are unchanged, ${tool} runs at once${tellTargets(targets)}; otherwise you are asked again.`,
    dryRun.possible ? '' : 'It had no dry run: what it will do is not known beforehand.',
    tellProofAfter(dryRun.proof),
    reversible ? 'It can be reversed.' : 'It cannot be undone.',
  ]
    .filter(Boolean)
    .join(' ')
}

function tellProofAfter(proof: Asked['dryRun']['proof']): string {
  if (!proof) return 'Look at its targets afterwards: what proves it was not stored.'
  return proof.by === 'state'
    ? 'Afterwards code checks whether it worked.'
    : 'Afterwards nothing proves that it worked.'
}

function tellTargets(targets: Asked['targets']): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  if (named.length === 0) return ''
  const shown = named.slice(0, namedTargets).map(({ kind, id }) => `${kind} ${id}`)
  const more = named.length - shown.length
  return ` on ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** What became of the platform by an approval that is over; null while it waits, and where the incident's log has to say it. */
export function tellSettled({ status }: Pick<Approval, 'status'>): string | null {
  switch (status) {
    case 'expired':
      return 'Expired: nobody decided in time, and nothing was changed.'
    case 'denied':
      return 'Denied: nothing was changed.'
    case 'withdrawn':
      return 'Withdrawn: by this approval nothing was changed.'
    case 'approved':
      return 'Approved: it has not started yet.'
    case 'consumed':
      return 'Approved and started: the incident shows what it did.'
    default:
      return null
  }
}
