import type { Severity } from './incident.ts'
import { idPattern, inventoryKinds } from './kinds.ts'
import type { ResourceRef } from './registry.ts'
import { matchesGlob } from './route.ts'

/**
 * The delay of a new incident's page, as `page.hold` sets it: `300`, or `host:db-* = 0; critical =
 * 120; 60`.
 */

/** Maximum seconds for which a page may wait. */
const maxHoldSeconds = 300

/** A rule for the delay. A null part means any value. The first rule that fits decides. */
export type HoldRule = { severity: Severity | null; kind: string | null; id: string | null; seconds: number }

const severities: readonly string[] = ['critical', 'warning', 'info']
const maxRules = 50
const usage = `use seconds from 0 to ${maxHoldSeconds}, or rules separated by semicolons: host:db-* = 0; critical = 120; 60`

/**
 * Parses the setting `page.hold`. Refuses an unknown text, or a rule that no incident can match,
 * and lists what is accepted.
 */
export function parsePageHold(text: string): { ok: true; value: HoldRule[] } | { ok: false; reason: string } {
  const parts = text
    .split(/[;\n]/)
    .map((part) => part.trim())
    .filter(Boolean)
  if (parts.length === 0 || parts.length > maxRules)
    return { ok: false, reason: `must be 1 to ${maxRules} rules: ${usage}` }
  const rules: HoldRule[] = []
  for (const part of parts) {
    if (rules.some(({ severity, kind }) => severity === null && kind === null))
      return {
        ok: false,
        reason: `${JSON.stringify(part.slice(0, 80))} is never reached: the rule before it matches everything`,
      }
    const rule = parseRule(part)
    const fault = rule === null ? `is not a rule: ${usage}` : faultOf(rule)
    if (rule === null || fault !== null) return { ok: false, reason: `${JSON.stringify(part.slice(0, 80))} ${fault}` }
    rules.push(rule)
  }
  return { ok: true, value: rules }
}

/** Explains why no incident can match a rule; null if an incident can. */
function faultOf({ severity, kind }: HoldRule): string | null {
  if (severity !== null && severity !== 'critical') return 'never matches: only critical incidents page when they open'
  if (kind !== null && !inventoryKinds.some((known) => known === kind))
    return `has an unknown kind of resource; known are ${inventoryKinds.join(', ')}`
  return null
}

function parseRule(part: string): HoldRule | null {
  const [, subject = '', digits = ''] = /^(?:([^=\s]+)\s*=\s*)?(\d{1,3})$/.exec(part) ?? []
  const seconds = Number(digits)
  if (digits === '' || seconds > maxHoldSeconds) return null
  if (subject === '') return { severity: null, kind: null, id: null, seconds }
  if (severities.includes(subject)) return { severity: subject as Severity, kind: null, id: null, seconds }
  const [, kind = '', id = ''] = /^([a-z_]+):(\S+)$/.exec(subject) ?? []
  return kind !== '' && idPattern.test(id.replaceAll('*', 'x')) ? { severity: null, kind, id, seconds } : null
}

/** Returns the seconds for which the page of an incident waits; 0 if no rule fits. */
export function holdSecondsOf(
  rules: readonly HoldRule[],
  { severity, resource }: { severity: Severity; resource: ResourceRef | null },
): number {
  const rule = rules.find(
    (each) =>
      (each.severity === null || each.severity === severity) &&
      (each.kind === null || (resource?.kind === each.kind && matchesGlob(each.id ?? '', resource.id))),
  )
  return rule?.seconds ?? 0
}
