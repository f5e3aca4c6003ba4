import type { IncidentEvent } from '../../domain/event.ts'
import type { VerificationOutcome } from '../../domain/verification.ts'
import { kinds } from '../kinds.tsx'

/** The sign of a row: of its kind, or of how it ended where that matters more. */
export function signOf(event: IncidentEvent) {
  const look = kinds[event.kind] ?? { word: event.kind, shape: 'ring', tone: 'quiet' }
  if (event.kind === 'tool_finished' && event.metadata.outcome !== 'done')
    return { ...look, word: event.metadata.outcome, shape: 'cross', tone: 'critical' } as const
  if (event.kind === 'call_judged' && event.metadata.verdict === 'refuse')
    return { ...look, word: 'refused', shape: 'cross', tone: 'critical' } as const
  if (event.kind === 'call_judged' && event.metadata.verdict === 'ask')
    return { ...look, word: 'to be asked', tone: 'lamp' } as const
  if (event.kind === 'approval_decided' && event.metadata.decision === 'deny')
    return { ...look, word: 'denied', shape: 'cross', tone: 'critical' } as const
  if (event.kind === 'approval_decided') return { ...look, word: 'approved', shape: 'check' } as const
  if (event.kind === 'verification') return { ...look, ...(signs[event.metadata.outcome] ?? signs.open) }
  if (event.kind === 'alert_received' && event.metadata.status === 'resolved')
    return { ...look, word: 'alert ended', shape: 'check', tone: 'good' } as const
  return look
}

/** What is neither proved nor disproved is no success: a ring where it could not be read, a bar where nothing was promised. */
const signs = {
  held: {},
  not_held: { word: 'did not hold', shape: 'cross', tone: 'critical' },
  open: { shape: 'ring', tone: 'info' },
  unproven: { word: 'unproven', shape: 'bar', tone: 'warning' },
} as const satisfies Record<VerificationOutcome, object>
