import type { IncidentEvent } from '../../domain/event.ts'
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
  if (event.kind === 'verification' && event.metadata.outcome !== 'held')
    return {
      ...look,
      shape: event.metadata.outcome === 'open' ? 'ring' : 'cross',
      tone: event.metadata.outcome === 'open' ? 'info' : 'critical',
    } as const
  if (event.kind === 'alert_received' && event.metadata.status === 'resolved')
    return { ...look, word: 'alert ended', shape: 'check', tone: 'good' } as const
  return look
}
