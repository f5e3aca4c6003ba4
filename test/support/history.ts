import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import type proto from '@temporalio/proto'

export type History = proto.temporal.api.history.v1.IHistory

/** The names of the activities a run asked for, in order. */
export function scheduled(history: History): string[] {
  return (history.events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [])
}

/** All that a history says in words: every string of a payload, every failure, every summary, and the whole as text. */
export function spoken(history: History) {
  const payloads: string[] = []
  const failures: string[] = []
  const summaries: string[] = []
  let everything = ''
  const visit = (value: unknown, key: string): void => {
    if (typeof value === 'string') {
      everything += `${value}\n`
      return
    }
    if (value === null || typeof value !== 'object') return
    const node = value as Record<string, unknown>
    if (typeof node.data === 'string' && node.metadata) {
      const text = Buffer.from(node.data, 'base64').toString()
      everything += `${text}\n`
      if (text !== '') (key === 'summary' ? summaries : payloads).push(...stringsOf(JSON.parse(text)))
      return
    }
    if (key === 'failure' || key === 'lastFailure') failures.push(String(node.message ?? ''))
    if (key === 'cause') failures.push(String(node.message ?? ''))
    for (const [name, child] of Object.entries(node)) visit(child, Array.isArray(value) ? key : name)
  }
  visit(JSON.parse(historyToJSON(history)), '')
  return { payloads, failures, summaries, everything }
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value !== 'object') return []
  return Object.values(value).flatMap(stringsOf)
}
