import { type InventoryKind, idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'

/**
 * The rule `label=before*after -> kind:id`. A `*` in the id stands for the text that the star of
 * the pattern matched. If `after` is null, the value must equal `before`.
 */
export type ResourceRule = { label: string; before: string; after: string | null; kind: InventoryKind; id: string }

type ParsedRules = { ok: true; rules: ResourceRule[] } | { ok: false; reason: string }

const form = /^([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=\s*(\S+))?\s*->\s*([a-z_]+):(\S+)$/

/**
 * Parses the setting `alert.resource_labels`, which maps an installation's own labels to resources,
 * one rule per line or semicolon:
 *
 *   app_host -> node:*
 *   customer=eu-* -> tenant:*
 */
export function parseResourceRules(text: string): ParsedRules {
  const rules: ResourceRule[] = []
  for (const line of text.split(/[;\n]/).map((each) => each.trim())) {
    if (line === '') continue
    const [, label = '', pattern = '*', kind = '', id = ''] = form.exec(line) ?? []
    const known = inventoryKind.safeParse(kind)
    if (label === '') return { ok: false, reason: `${quote(line)} is not of the form label=pattern -> kind:id` }
    if (!known.success)
      return { ok: false, reason: `${quote(kind)} is not a kind: ${inventoryKind.options.join(', ')}` }
    const [before = '', after = null, ...more] = pattern.split('*')
    if (more.length > 0) return { ok: false, reason: `${quote(pattern)} has more than one *` }
    if (!idPattern.test(id.replace('*', 'x'))) return { ok: false, reason: `${quote(id)} is not an id` }
    if (after === null && id.includes('*'))
      return { ok: false, reason: `${quote(line)}: the pattern has no * that fills the * of ${id}` }
    rules.push({ label, before, after, kind: known.data, id })
  }
  return { ok: true, rules }
}

/** Formats rules in the form in which the setting stores them. */
export const formatResourceRules = (rules: readonly ResourceRule[]): string =>
  rules
    .map(({ label, before, after, kind, id }) => {
      const pattern = after === null ? before : `${before}*${after}`
      return `${label}${pattern === '*' ? '' : `=${pattern}`} -> ${kind}:${id}`
    })
    .join('; ')

const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
