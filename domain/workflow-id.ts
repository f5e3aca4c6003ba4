import type { Run } from './step-key.ts'

/** Names at Temporal. They are stored in rows and histories, and people type them: none may change. */

/** Where workflows and most activities are polled for; requests to a model have a queue beside it (`llmTaskQueue`). */
export const defaultTaskQueue = 'nightshift'

export const llmTaskQueue = (taskQueue: string): string => `${taskQueue}-llm`

/** The Schedule that starts `ProcessIncidentQueue`. */
export const queueScheduleId = 'process-incident-queue'

export const investigationId = ({ incidentId, attempt }: Run): string => `investigate:${incidentId}:${attempt}`

/** Incident and attempt of an investigation's id; null for any other text. */
export function parseInvestigationId(id: string): Run | null {
  const [, incidentId, attempt] = /^investigate:([^:]+):(\d+)$/.exec(id) ?? []
  return incidentId === undefined ? null : { incidentId, attempt: Number(attempt) }
}

/** The workflow that runs the incidents of one type: a leader and its followers. */
export const groupWorkflowId = (type: string): string => `group:${type}`
