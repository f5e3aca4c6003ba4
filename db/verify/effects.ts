import type { IncidentEvent } from '../../domain/event.ts'
import type { Trx } from '../connect.ts'
import type { Notes } from './findings.ts'

/**
 * Compares effects that have a step key of this incident: each was announced with its action, and
 * ended as its log row reports.
 */
export async function verifyEffects(
  trx: Trx,
  id: string,
  events: readonly IncidentEvent[],
  notes: Notes,
): Promise<void> {
  const effects = await trx
    .selectFrom('effect')
    .select(['key', 'tool', 'actionDigest', 'status', 'result'])
    .where('incidentId', '=', id)
    .orderBy('key')
    .execute()
  const started = new Map<string, IncidentEvent<'tool_started'>>()
  const outcomes = new Map<string, string>()
  for (const event of events) {
    if (event.kind === 'tool_started' && event.stepKey) started.set(event.stepKey, event)
    if (event.kind === 'tool_finished')
      outcomes.set(`${event.attempt} ${event.metadata.callId}`, event.metadata.outcome)
  }
  for (const effect of effects.filter(({ key }) => key.startsWith(`${id}.`))) {
    notes.check('effects')
    const what = flawOf(effect, started, outcomes)
    if (what) notes.differ(effect.key, what)
  }
}

function flawOf(
  effect: { key: string; actionDigest: string; status: string },
  started: ReadonlyMap<string, IncidentEvent<'tool_started'>>,
  outcomes: ReadonlyMap<string, string>,
): string | null {
  const { key, actionDigest, status } = effect
  // Recognizes a step of a plan by its key, which begins with the key of the plan.
  const isStep = !started.has(key)
  const event = started.get(key) ?? started.get(key.replace(/:\d+$/, ''))
  if (!event) return 'no row announces this write'
  if (isStep) return null
  if (event.metadata.actionDigest !== actionDigest) return 'the action differs from the row that announces it'
  const outcome = outcomes.get(`${event.attempt} ${event.metadata.callId}`)
  const isContrary = (outcome === 'done' && status === 'failed') || (outcome === 'failed' && status === 'done')
  return isContrary ? `status is ${status}, the rows say ${outcome}` : null
}
