import type { IncidentEvent } from '../domain/event.ts'

const columns = ['seq', 'at', 'attempt', 'turn', 'kind', 'action', 'actor', 'detail', 'metadata', 'hash'] as const

/** Rows as RFC 4180. A cell that a spreadsheet would take for a formula begins with an apostrophe: alerts write here too. */
export function eventsCsv(events: IncidentEvent[]): string {
  const lines = events.map((event) =>
    columns.map((column) => cell(column === 'metadata' ? JSON.stringify(event.metadata) : event[column])).join(','),
  )
  return `${[columns.join(','), ...lines].join('\r\n')}\r\n`
}

function cell(value: string | number | null): string {
  if (value === null) return ''
  const text = String(value)
  const inert = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}
