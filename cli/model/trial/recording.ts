import { agentActor, type EventMetadata, type IncidentEvent } from '../../../domain/event.ts'
import { manualChangeType } from '../../../domain/manual-change.ts'
import { questionType } from '../../../domain/question.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { bodiesToCheck } from '../../../safety/claims/rows.ts'
import { type ApiClient, ApiProblem } from '../../api.ts'
import { type ApiIncident, listEventsAfter } from '../../read-api.ts'

/** An investigation in the log, with every text that is needed to repeat it. */
export type Recording = {
  incident: { id: string; type: string; title: string; resource: ResourceRef | null }
  attempt: number
  /** All rows of the incident, oldest first. */
  events: readonly IncidentEvent[]
  opening: IncidentEvent<'context_assembled'>
  /** The row with which the agent ended the investigation. */
  ending: IncidentEvent<'resolved' | 'escalated'>
  /**
   * Stored texts by digest: the first turn, and results that were too large for a row, unless they
   * are lost.
   */
  texts: ReadonlyMap<string, string>
}

/**
 * Codes of endings that prove nothing about a model: a server that did not respond, a missing part,
 * the money limit.
 */
const foreignEnds = new Set([
  'CONTEXT_FAILED',
  'MODEL_UNAVAILABLE',
  'MONEY_BUDGET',
  'TIME_BUDGET',
  'INDETERMINATE',
  'ACT_FAILED',
  'UNKNOWN_OUTCOME',
])

/**
 * Finds the newest attempt that the agent ended, or the reason why no attempt can be repeated.
 * Pure.
 */
function findAttempt(
  { type }: Pick<ApiIncident, 'type'>,
  events: readonly IncidentEvent[],
): Pick<Recording, 'attempt' | 'opening' | 'ending'> | { why: string } {
  if (type === manualChangeType) return { why: 'a person’s own write' }
  if (type === questionType) return { why: "a person's question" }
  const ending = events.findLast(isAgentsEnding)
  if (!ending) return { why: 'the agent did not end this incident' }
  if (ending.kind === 'escalated' && foreignEnds.has(ending.metadata.code)) {
    return { why: `the incident ended with ${ending.metadata.code}` }
  }
  const { attempt } = ending
  const opening = events.find(
    (event): event is IncidentEvent<'context_assembled'> =>
      event.kind === 'context_assembled' && event.attempt === attempt,
  )
  const hasAnswers = events.some((event) => event.kind === 'model_answered' && event.attempt === attempt)
  return opening && hasAnswers ? { attempt, opening, ending } : { why: 'no model was asked' }
}

function isAgentsEnding(event: IncidentEvent): event is IncidentEvent<'resolved' | 'escalated'> {
  return (event.kind === 'resolved' || event.kind === 'escalated') && event.actor === agentActor
}

/**
 * Reads an incident with its texts. Returns the reason if it cannot be repeated. Throws if the API
 * cannot be reached.
 */
export async function readRecording(api: ApiClient, incident: ApiIncident): Promise<Recording | { why: string }> {
  const events = await listEventsAfter(api, incident.id)
  const found = findAttempt(incident, events)
  if ('why' in found) return found
  const texts = new Map<string, string>()
  const first = firstTexts(found.opening.metadata)
  for (const digest of new Set([...first, ...bodiesToCheck(events, found.attempt)])) {
    const text = await readText(api, incident.id, digest)
    if (text !== null) texts.set(digest, text)
  }
  if (first.some((digest) => !texts.has(digest))) return { why: 'the texts of its first turn are no longer kept' }
  const { id, type, title, resource } = incident
  return { incident: { id, type, title, resource }, events, texts, ...found }
}

function firstTexts({ prompt, tools, context, more, runbooks }: EventMetadata['context_assembled']): string[] {
  return [prompt, tools, context, more, runbooks].flatMap((body) => body?.digest ?? [])
}

async function readText(api: ApiClient, id: string, digest: string): Promise<string | null> {
  try {
    const answer = await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/bodies/${digest}`)
    return (answer as { text: string }).text
  } catch (error) {
    if (error instanceof ApiProblem && error.problem.status === 404) return null
    throw error
  }
}
