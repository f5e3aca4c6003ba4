import type { BodyHint } from '../domain/alert-body.ts'
import { unwrap, valueAt } from './by-paths.ts'
import { doors } from './doors.ts'
import { capChars, cleanText, isFields, readBody, spokenText } from './fields.ts'

/** Fields that identify the dialects that are not in the table `doors`. */
const otherMarks: Record<string, readonly string[]> = {
  alertmanager: ['alerts', 'receiver', 'groupKey'],
  grafana: ['alerts', 'receiver', 'groupKey', 'orgId'],
}

/**
 * Explains a refused request body: which dialect has most of its fields, and which of its fields
 * correspond to fields of `generic`.
 */
export function hintOf(bytes: Uint8Array): BodyHint | null {
  const body = readBody(bytes)
  const first = body.ok && Array.isArray(body.value) ? body.value[0] : body.ok ? body.value : null
  if (!isFields(first)) return null
  return { nearest: nearestOf(first), mapping: mappingOf(first) }
}

function nearestOf(body: Record<string, unknown>): BodyHint['nearest'] {
  let best: (NonNullable<BodyHint['nearest']> & { share: number }) | null = null
  const all = { ...otherMarks, ...Object.fromEntries(Object.entries(doors).map(([name, { marks }]) => [name, marks])) }
  for (const [dialect, marks] of Object.entries(all)) {
    const item = unwrap(body, doors[dialect] ?? {})
    const found = 'fields' in item ? item.fields : body
    const missing = marks.filter((mark) => valueAt(found, mark) === undefined)
    const has = marks.filter((mark) => !missing.includes(mark))
    // Requires more than half of the marks, because the bodies of many senders have a title and a
    // message.
    if (has.length * 2 <= marks.length || (best && best.share >= has.length / marks.length)) continue
    best = { dialect, has, missing, share: has.length / marks.length }
  }
  return best && { dialect: best.dialect, has: best.has, missing: best.missing }
}

/**
 * Usual names for the content of each `generic` field, compared with the last part of a path. The
 * first name that matches is used.
 */
const usualNames = {
  name: /^(alert_?name|rule_?name|check_?name|alert_?title|name|title|subject|summary|check|rule|monitor)$/i,
  severity: /^(severity|priority|level|urgency|criticality|alert_?level)$/i,
  state: /^(state|status|action|event_?action|new_?state|alert_?state|event_?type)$/i,
  dedup: /^(dedup|dedup_?key|fingerprint|alert_?id|incident_?id|event_?id|id|uid|uuid|key)$/i,
  startsAt: /^(starts_?at|started_?at|timestamp|time|date|created_?at|event_?time|triggered_?at)$/i,
  details: /^(details|description|message|text|body|msg|output|reason)$/i,
} as const
const usualLabels =
  /(host|node|instance|server|machine|device|service|cluster|region|vm|pod|container|namespace|env|environment|address|ip)/i

const maxLeaves = 200
const maxLabels = 12
const maxPathChars = 120

/** Finds fields of a request body that have the content of a `generic` field under another name. */
function mappingOf(body: Record<string, unknown>): BodyHint['mapping'] {
  const leaves = leavesOf(body)
  const taken = new Set<string>()
  const mapping: BodyHint['mapping'] = []
  for (const [field, form] of Object.entries(usualNames)) {
    const found = leaves.find(({ path, word }) => !taken.has(path) && form.test(word))
    if (!found) continue
    taken.add(found.path)
    mapping.push({ field, path: found.path, value: found.value })
  }
  for (const { path, word, value } of leaves) {
    const label = `labels.${word}`
    const isNew = !taken.has(path) && !mapping.some(({ field }) => field === label)
    if (isNew && usualLabels.test(word) && mapping.length < maxLabels + Object.keys(usualNames).length)
      mapping.push({ field: label, path, value })
  }
  return mapping
}

type Leaf = { path: string; word: string; value: string }

/** Lists the texts and numbers in a request body with their paths, the least nested first. */
function leavesOf(body: Record<string, unknown>): Leaf[] {
  const leaves: Leaf[] = []
  let level: { path: string; fields: object }[] = [{ path: '', fields: body }]
  for (let depth = 0; depth < 5 && level.length > 0 && leaves.length < maxLeaves; depth += 1) {
    const next: typeof level = []
    for (const { path, fields } of level.slice(0, maxLeaves)) {
      for (const [word, value] of Object.entries(fields).slice(0, maxLeaves)) {
        const own = capChars(cleanText(path === '' ? word : `${path}.${word}`), maxPathChars)
        if (value !== null && typeof value === 'object') next.push({ path: own, fields: value })
        else if (leaves.length < maxLeaves && spokenText(value) !== null)
          leaves.push({
            path: own,
            word: capChars(cleanText(word), maxPathChars),
            value: capChars(cleanText(String(value)), 80),
          })
      }
    }
    level = next
  }
  return leaves
}
