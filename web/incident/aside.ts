import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'
import { tellOutcome } from '../../domain/told-verification.ts'
import type { Envelope } from '../../domain/tool.ts'
import { briefly } from './briefly.ts'

/** The few numbers of a row that are worth a glance. */
export function asideOf(event: IncidentEvent): string[] {
  switch (event.kind) {
    case 'model_answered': {
      const { usage, durationMs, model, calls } = event.metadata
      return [
        model,
        `${usage.promptTokens + usage.completionTokens} tokens`,
        seconds(durationMs),
        ...calls.map(({ tool }) => `→ ${tool}`),
      ]
    }
    case 'tool_started':
      return [argumentsOf(event.metadata.arguments)]
    case 'tool_finished':
      return [seconds(event.metadata.durationMs), found(event.metadata.result)]
    case 'call_judged':
      return [event.metadata.tool, event.metadata.verdict, event.metadata.code]
    case 'approval_requested':
      return [`${event.metadata.risk} risk`, `${event.metadata.required} to approve`]
    case 'approval_decided':
      return [`via ${event.metadata.via}`]
    case 'verification':
      return [tellOutcome(event.metadata.outcome), event.metadata.observed].filter(Boolean)
    case 'looked': {
      const { verification, resource } = event.metadata
      return [lookPurposes[event.metadata.purpose], verification && tellOutcome(verification), resource].flatMap(
        (word) => word ?? [],
      )
    }
    case 'budget_ended':
      return [`${event.metadata.used} of ${event.metadata.limit} ${event.metadata.budget}`]
    case 'notified':
      return [event.metadata.destination, event.metadata.status]
    default:
      return []
  }
}

const lookPurposes: Record<EventMetadata['looked']['purpose'], string> = {
  watch: 'after the repair',
  expected: 'is it what is expected?',
  crowd: 'after many alerts ended at once',
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

function argumentsOf(value: Record<string, unknown>): string {
  const text = JSON.stringify(value)
  return text.length > 160 ? `${text.slice(0, 158)}…` : text
}

export function found(result: Envelope): string {
  return result.error ? result.error.message : briefly(result.data)
}
